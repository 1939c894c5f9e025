"""Run one program under one configuration, and say what it cost.

Target: the program alone, as bench-meter's wait4 tells it. Recorder: every other process that the configuration needs
(memlog's host and service, heaptrack's interpreter and compressor): the CPU time of all that was started, less target's."""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from configurations import MEMLOG

PR_SET_CHILD_SUBREAPER = 36

# Memory is looked at this often. The kernel keeps a process's peak itself, so only what it grows in its last moments can be missed.
LOOK_S = 0.02

# A recorder or a target that wants more, or takes longer, is stopped, and that is its result.
MOST_BYTES = 8 << 30
MOST_S = 60

# What is left behind when the command has ended (a service that writes its last lines).
ORPHANS_S = 5


def become_subreaper():
    """Whoever is orphaned below us is ours to wait for: no CPU time is lost."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def children_of(pid):
    """Of its first thread: [] when it is gone."""
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def tree_below(pid):
    found = []
    for child in children_of(pid):
        found += [child, *tree_below(child)]
    return found


def peak_in_status(text):
    """VmHWM of /proc/PID/status, in bytes; None for what has no memory (any more)."""
    for line in text.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def name_in_status(text):
    return text[len("Name:\t"):text.index("\n")] if text.startswith("Name:\t") else ""


class Watch:
    """Peaks of resident memory of every process below ours, by name, seen from /proc."""

    def __init__(self, roots):
        self.roots = roots
        self.peaks = {}  # (pid, name) -> bytes
        self.rounds = 0
        self.known = []

    def look(self):
        """The largest peak seen now."""
        # Most processes are there from the start: the tree is walked often then, and seldom later.
        if self.rounds < 10 or self.rounds % 10 == 0:
            self.known = [*self.roots, *(pid for root in self.roots for pid in tree_below(root))]
        self.rounds += 1
        largest = 0
        for pid in self.known:
            try:
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            peak = peak_in_status(status)
            if peak is not None:
                self.peaks[pid, name_in_status(status)] = peak
                largest = max(largest, peak)
        return largest

    def peak_of(self, names):
        """Sum over the processes so named; None when there was none."""
        # A process has its starter's name until its exec.
        found = [peak for (_, name), peak in self.peaks.items() if name in names]
        return sum(found) if found else None


RECORDERS = ("memlog-service", "heaptrack_inter")


class Child:
    """A process of ours, waited for by a thread: when it ended is known to the microsecond."""

    def __init__(self, words, environment):
        self.start_s = time.monotonic()
        self.process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self.status = self.usage = self.end_s = None
        self.said = b""
        self.ended = threading.Event()
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.wait, daemon=True).start()

    def listen(self):
        while True:
            piece = os.read(self.process.stderr.fileno(), 65536)
            if not piece:
                break
            self.said = (self.said + piece)[-4000:]

    def wait(self):
        _, self.status, self.usage = os.wait4(self.pid, 0)
        self.end_s = time.monotonic()
        self.process.returncode = os.waitstatus_to_exitcode(self.status)
        self.ended.set()

    def stop(self):
        for pid in [*reversed(tree_below(self.pid)), self.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def cpu_of(usage):
    return usage.ru_utime + usage.ru_stime


def reap_orphans():
    """CPU seconds of processes that outlived who started them; those that stay are ended."""
    seconds = 0.0
    deadline = time.monotonic() + ORPHANS_S
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return seconds
        if pid:
            seconds += cpu_of(usage)
            continue
        if time.monotonic() > deadline:
            for orphan in children_of(os.getpid()):
                os.kill(orphan, signal.SIGKILL)
        time.sleep(0.01)


class Loader(threading.Thread):
    """Puts a server under load beside the watching."""

    def __init__(self, workload, size, folder):
        super().__init__(daemon=True)
        self.of = workload, size, folder
        self.seconds = None
        self.error = ""

    def run(self):
        workload, size, folder = self.of
        try:
            self.seconds = workload.load(workload, size, folder)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            self.error = str(error)


def watch_to_the_end(main, helpers, watch):
    """"ok", or why it was stopped."""
    children = [main, *helpers]
    while not all(child.ended.wait(LOOK_S if child is main else 0) for child in children):
        largest = watch.look()
        reason = ""
        if largest > MOST_BYTES:
            reason = f"stopped at {MOST_BYTES >> 30} GiB"
        elif time.monotonic() - main.start_s > MOST_S:
            reason = f"stopped after {MOST_S} s"
        if not reason and main.ended.is_set():
            time.sleep(LOOK_S)
        if reason:
            for child in children:
                child.stop()
            for child in children:
                child.ended.wait()
            return reason
    return "ok"


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError):
        return None


def memlog_figures(folder):
    """What memlog's own report says of the run: sums over its processes."""
    dumps = sorted(pathlib.Path(folder, "dumps").glob("*.exit.pftrace"))
    if not dumps:
        return {}
    words = [str(MEMLOG), "report", "--json", "--limit=1", str(dumps[-1])]
    answer = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if answer.returncode != 0:
        return {"report_error": answer.stderr.decode(errors="replace")[-300:]}
    report = json.loads(answer.stdout)
    figures = {"complete": report["dump"]["complete"], "dump_bytes": dumps[-1].stat().st_size}
    for key in ("events", "lost_events", "stack_nodes", "counter_cells", "truncated_stacks", "broken_stacks", "peak_blocks"):
        figures[key] = sum(process[key] for process in report["processes"])
    for key in ("stream_bytes", "waits", "waited_ns"):
        figures[key] = sum(process["accounting"][key] for process in report["processes"])
    # Where nothing was recorded there is no process.
    waits = (process["accounting"]["longest_wait_ns"] for process in report["processes"])
    figures["longest_wait_ns"] = max(waits, default=0)
    return figures


def one_run(workload, size, configuration):
    """Everything measured, as it goes into the JSON file (without who and when)."""
    folder = tempfile.mkdtemp(prefix="memlog-bench.")
    try:
        return measured(workload, size, configuration, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured(workload, size, configuration, folder):
    if workload.prepare:
        workload.prepare(workload, size, folder)
    launch = configuration.launch(workload.words(size, folder), workload.environment, folder)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MEMLOG_", "LD_PRELOAD", "MALLOC"))}
    helpers = [Child(words, environment) for words in launch.helpers]
    main = Child(launch.words, environment)
    watch = Watch([main.pid, *(helper.pid for helper in helpers)])
    loader = Loader(workload, size, folder) if workload.load else None
    if loader:
        loader.start()
    ended = watch_to_the_end(main, helpers, watch)
    if loader:
        loader.join()
    wall_s = max(child.end_s for child in [main, *helpers]) - main.start_s
    all_cpu_s = sum(cpu_of(child.usage) for child in [main, *helpers]) + reap_orphans()
    run = {"ended": ended, "wall_s": wall_s}
    if loader:
        run["wall_s"] = loader.seconds
        if ended == "ok" and loader.error:
            run["ended"] = loader.error
    meter = read_json(f"{folder}/meter.json")
    if run["ended"] == "ok" and (meter is None or meter["exit_code"] != 0):
        run["ended"] = died(meter, main)
    if run["ended"] != "ok":
        return run
    run |= {
        "target_wall_s": meter["wall_s"],
        "target_user_s": meter["user_s"],
        "target_system_s": meter["system_s"],
        "target_peak_rss_bytes": meter["peak_rss_bytes"],
        "target_own_bytes": meter["own_bytes"],
        # bench-meter's own start is in it: a millisecond.
        "recorder_cpu_s": max(all_cpu_s - meter["user_s"] - meter["system_s"], 0.0),
        "recorder_peak_rss_bytes": watch.peak_of(RECORDERS),
    }
    if configuration.name.startswith("memlog"):
        run |= memlog_figures(folder)
    latency = read_json(f"{folder}/latency.json")
    if latency:
        run["latency"] = latency
    return run


def died(meter, main):
    if meter and meter["signal"]:
        return f"killed by {signal.Signals(meter['signal']).name}"
    said = main.said.decode(errors="replace").strip().splitlines()
    code = meter["exit_code"] if meter else main.process.returncode
    return f"exit code {code}" + (f": {said[-1][:160]}" if said else "")
