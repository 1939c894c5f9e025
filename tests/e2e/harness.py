"""Run the built memlog as a person would, and read what it leaves. Standard library only."""
import contextlib
import faulthandler
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", ROOT / "out")).resolve()
KEEP = os.environ.get("MEMLOG_TEST_KEEP", "")
MEMLOG = OUT / "memlog"
PROGRAMS = OUT / "tests"
# Debian 12 has mimalloc 2, those after it mimalloc 3.
MIMALLOC = max(pathlib.Path("/usr/lib").glob("*/libmimalloc.so.[23]"), default=pathlib.Path("/usr/lib/libmimalloc.so.2"))

# Nobody's own defaults are read by what is started here, with an environment of its own or not.
# What a browser keeps there goes with the folder.
CONFIG = tempfile.TemporaryDirectory(prefix="memlog-config.", ignore_cleanup_errors=True)
os.chmod(CONFIG.name, 0o755)
os.environ["XDG_CONFIG_HOME"] = CONFIG.name

# Who is ended by the runner says before where it hangs.
SECONDS = int(os.environ.get("MEMLOG_TEST_SECONDS", 0))
if SECONDS > 0:
    faulthandler.dump_traceback_later(max(SECONDS - 3, 1))

# Far more than any of these runs takes on a loaded machine; a hang is a failure, not a wait.
TIMEOUT = 120
LARGE_BYTES, LARGE_STACKS = 16 << 20, 100
OVERRUN_TRIES = 5


# ledger_die() of tests/oracle: a child was killed, say.
GAVE_UP = 99


def unbalanced(report):
    """What is wrong with where a report says that its events went; [] if every one is accounted for."""
    wrong = []
    for entry in report["processes"]:
        who = f'{entry["name"]} {entry["pid"]} ({entry["state"]})'
        accounting = entry["accounting"]
        dropped = sum(accounting["dropped"].values())
        if accounting["produced"] != accounting["received"] + accounting["in_flight"] + dropped:
            wrong.append(f"{who}: produced is not received + in_flight + dropped: {accounting}")
        if not accounting["balanced"] or accounting["dropped"]["unaccounted"]:
            wrong.append(f"{who}: events are unaccounted for: {accounting}")
        if accounting["received"] != entry["events"] or dropped != entry["lost_events"]:
            wrong.append(f"{who}: two counts of the same: {entry['events']}, {entry['lost_events']}, {accounting}")
        # Who gave up may have left threads of his behind in the middle of an event.
        if accounting["in_flight"] and entry["state"] == "exited" and entry["exit_code"] != GAVE_UP:
            wrong.append(f"{who}: it ended by itself, and something is still on its way: {accounting}")
        if not accounting["waits"] and (accounting["waited_ns"] or accounting["longest_wait_ns"]):
            wrong.append(f"{who}: waited, but never: {accounting}")
    return wrong


def misled(report):
    """What is wrong with whose live figures the tree's are; [] if running and ended processes are told apart."""
    wrong = []
    tree = report["tree"]
    for unit in ("bytes", "blocks"):
        running = sum(entry[f"live_{unit}"] for entry in report["processes"] if entry["in_tree"])
        ended = sum(entry[f"live_{unit}"] for entry in report["processes"] if not entry["in_tree"])
        held = sum(entry[f"held_at_tree_peak_{unit}"] for entry in report["processes"])
        # A dump of some processes alone has the whole tree's figures.
        if running > tree[f"live_{unit}"] or ended > tree[f"left_{unit}"] or held > tree[f"peak_{unit}"]:
            wrong.append(f"{unit}: processes hold {running}, left {ended}, held {held} at the peak, the tree says {tree}"[:400])
    if tree["live_bytes"] > tree["peak_bytes"]:
        wrong.append(f'live {tree["live_bytes"]} is above peak {tree["peak_bytes"]}')
    for entry in report["processes"]:
        if entry["in_tree"] and entry["state"] != "running":
            wrong.append(f'{entry["pid"]} is {entry["state"]}, and counts as running')
    return wrong


def shown(report, figure):
    """A figure of the tree as its stacks and the formats show it: what is live, and where nothing runs any more what was left."""
    tree = report["tree"]
    return tree[figure] + (tree[figure.replace("live", "left")] if figure.startswith("live") and tree.get("ended_shown") else 0)


# A little below the second that a full pipe is waited for (interface.md), as clocks are read before and behind.
PIPE_WAIT_NS = 900_000_000


def lost_too_early(entry):
    """Events lost by a process that has not waited for the service as long as is promised. A machine that stands still for longer than
    that may cost events, and only such a one."""
    return entry["lost_events"] if entry["accounting"]["longest_wait_ns"] < PIPE_WAIT_NS else 0


def stayed_full(entry):
    """A process has waited in vain for as long as is promised: then whole chunks are dropped, though their events may have been read before."""
    return entry["accounting"]["longest_wait_ns"] >= PIPE_WAIT_NS and entry["trouble"].startswith("its pipe stayed full")


def overran(report):
    """Somebody is not complete, and all that is missing anywhere is what a machine costs that stands still for longer than a full pipe is
    waited for: who has lost events says so, and how many; whoever forked from such a one does not know what he inherited."""
    entries = [entry for entry in report["processes"] if entry["complete"] is False]
    incomplete = {entry["id"] for entry in entries}
    lossy = {entry["id"] for entry in entries
             if entry["trouble"].startswith("its pipe stayed full") and entry["accounting"]["waits"] > 0
             and entry["accounting"]["dropped"]["overrun"] == entry["lost_events"]}
    return bool(entries) and all(
        entry["id"] in lossy
        or entry["parent_id"] in incomplete and entry["trouble"].startswith("what it inherited") and not entry["lost_events"]
        for entry in entries
    )


def ticks_of(pid):
    """The time of a processor that a process and its children have had, in hundredths of a second; None: it has ended."""
    try:
        fields = [pathlib.Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in (pid, *children_of(pid))]
    except OSError:
        return None
    return None if fields[0][0] == "Z" else sum(int(ticks) for one in fields for ticks in one[11:13])


def comm_of(pid):
    """The name that the kernel gives a process; "": it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().removesuffix("\n")
    except OSError:
        return ""


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Run:
    """A finished `memlog run`."""

    def __init__(self, code, out, err, folder):
        self.code = code
        self.out = out
        self.err = err
        self.folder = folder

    def dumps(self, reason="exit"):
        return sorted(self.folder.glob(f"*.{reason}.pftrace"))


class FrameStore:
    """Makes equal frames of a parsed report one object: a compiler's report has millions of frames, thousands of them different."""

    def __init__(self):
        self.frames = {}

    def share(self, parsed):
        return self.frames.setdefault(tuple(parsed.values()), parsed) if "function" in parsed else parsed


class Case(unittest.TestCase):
    """A test with a folder of its own, which stays with MEMLOG_TEST_KEEP=1."""

    maxDiff = None
    # The runner's, for as long as it runs: to read the names of libc anew is most of what a report costs. Whoever tests how names
    # are read says "off".
    symbol_cache = os.environ.get("MEMLOG_TEST_SYMBOL_CACHE", "off")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memlog-test."))
        self.truth_folder = self.folder / "truth"
        self.truth_folder.mkdir()
        (self.folder / "run").mkdir(mode=0o700)
        self.runs = 0
        self.reported = set()
        self.addCleanup(self.clean_up)
        self.addCleanup(self.check_runs)

    def clean_up(self):
        if KEEP:
            print(f"\nkept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def check_runs(self):
        """Every dump of every run of this test adds up, also those that the test did not look at."""
        dumps = set(self.folder.glob("dumps*/*.pftrace"))
        for dump in sorted(dumps - self.reported):
            self.report(dump)

    def environment(self, **changes):
        # memlog refuses keys of its own name that it does not know; the runner's are not meant for it.
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        env["ORACLE_DIR"] = str(self.truth_folder)
        # `memlog dump` looks for the newest host of this user: other tests' hosts lie elsewhere.
        env["XDG_RUNTIME_DIR"] = str(self.folder / "run")
        env["MEMLOG_SYMBOL_CACHE"] = self.symbol_cache
        # What whoever runs the tests has set as his own defaults is none of theirs.
        env["XDG_CONFIG_HOME"] = str(self.folder / "config")
        env.update(changes)
        return env

    def memlog_command(self, program, options):
        self.runs += 1
        folder = self.folder / f"dumps{self.runs}"
        words = [str(MEMLOG), "run", "-o", str(folder), *options, "--", *map(str, program)]
        return words, folder

    def memlog(self, *program, options=("-q", "--no-page"), cwd=None, env=None, stdin=b"", timeout=TIMEOUT):
        """memlog run to the end."""
        words, folder = self.memlog_command(program, options)
        answer = run_words(words, cwd or self.folder, env or self.environment(), stdin, timeout)
        return Run(answer.returncode, answer.stdout, answer.stderr.decode(errors="replace"), folder)

    def memlog_start(self, *program, options=("-q", "--no-page"), env=None, before=(), stdin=subprocess.DEVNULL, **popen):
        """memlog run in the background, started by the words `before`; ended at the test's end if it is still there."""
        words, folder = self.memlog_command(program, options)
        words = [*before, *words]
        log = open(self.folder / f"stderr{self.runs}", "wb+")
        process = subprocess.Popen(
            words, cwd=self.folder, env=env or self.environment(), stdin=stdin,
            stdout=subprocess.PIPE, stderr=log, start_new_session=True, **popen,
        )
        process.memlog_folder = folder
        process.memlog_log = log

        def end():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            if process.stdin:
                with contextlib.suppress(OSError):  # nobody reads it any more
                    process.stdin.close()
                process.stdin = None
            process.communicate()
            log.close()

        self.addCleanup(end)
        return process

    def memlog_ready(self, *program, **how):
        """The same of a program that says that it is ready, and waits for a line before it begins."""
        process = self.memlog_start(*program, stdin=subprocess.PIPE, **how)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def go(self, process):
        """The line that it waits for."""
        process.stdin.write(b"\n")
        process.stdin.flush()

    def report(self, dump):
        """`memlog report --json DUMP`, parsed; who is not recorded stands in "unrecorded" and not in "processes"."""
        report = self.whole_report(dump)
        report["unrecorded"] = [entry for entry in report["processes"] if not entry["recorded"]]
        report["processes"] = [entry for entry in report["processes"] if entry["recorded"]]
        return report

    def whole_report(self, dump):
        """The same as it is; of a browser's dump the largest stacks alone: all of them are gigabytes of text."""
        limit = [f"--limit={LARGE_STACKS}"] if pathlib.Path(dump).stat().st_size > LARGE_BYTES else []
        answer = run_words([str(MEMLOG), "report", "--json", *limit, str(dump)], self.folder, self.environment(), b"", TIMEOUT)
        if answer.returncode != 0:
            self.fail(f"report failed ({answer.returncode}): {answer.stderr.decode(errors='replace')}")
        report = json.loads(answer.stdout, object_hook=FrameStore().share)
        report["limited"] = bool(limit)
        self.reported.add(pathlib.Path(dump))
        wrong = unbalanced(report) + misled(report)
        if wrong:
            print("\n# runner: no second chance", flush=True)
        self.assertEqual(wrong, [], dump)
        return report

    def undisturbed(self, play):
        """The report that play() makes, made again where the machine has stood still for so long that events were lost (overran)."""
        for _ in range(OVERRUN_TRIES):
            report = play()
            if not overran(report):
                break
            print(f"once more: the machine has stood still, load {os.getloadavg()[0]:.1f}", flush=True)
        return report

    def exit_report(self, run):
        dumps = run.dumps()
        if len(dumps) != 1:
            there = sorted(path.name for path in run.folder.iterdir()) if run.folder.exists() else "no folder"
            logs = {path.name: path.read_text(errors="replace")[-2000:] for path in self.folder.glob("stderr*")}
            self.fail(f"{len(dumps)} exit dumps in {run.folder}: {there}, exit code {run.code}, stderr: {run.err or logs}")
        return self.report(dumps[0])

    def wait_for(self, what, condition, timeout=TIMEOUT, seen=lambda: ""):
        """What `condition` finds; who waited in vain is told what is `seen` instead."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.01)
        self.fail(f"waited {timeout} s for {what} {seen()}")
        return None


def service_of(host):
    """The pid of the service of a memlog that runs as process `host`; a child that is not yet it has another name."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        with contextlib.suppress(OSError):  # a child that has ended meanwhile
            for child in children_of(host):
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "memlog-service\n":
                    return child
        if time.monotonic() > deadline:
            raise AssertionError(f"memlog {host} started no service within {TIMEOUT} s")
        time.sleep(0.01)


def gperftools_readers():
    """Those of the text form that this suite has: google-pprof has left Debian."""
    return [name for name in ("google-pprof", "jeprof") if shutil.which(name)]


def pprof():
    """pprof, built once without a network: source and all it needs come from golang-github-google-pprof-dev."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    program = PROGRAMS / "pprof"
    with open(PROGRAMS / ".pprof-lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not program.exists():
            go_build(program, "github.com/google/pprof", GOPATH="/usr/share/gocode")
    return program


def go_build(program, source, **environment):
    """Without a network. What is compiled of Go's library is kept for all scripts: that takes most of the time."""
    env = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "-trimpath", "GOCACHE": str(PROGRAMS / "go-cache"), **environment}
    built = run_words(["go", "build", "-o", str(program), str(source)], ROOT, env, b"", 240)
    if built.returncode != 0:
        raise AssertionError(built.stderr.decode(errors="replace"))


def run_words(words, cwd, env, stdin, timeout):
    """Run in a session of its own, ended as a whole when it takes too long."""
    process = subprocess.Popen(
        words, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        said = "; ".join(f"{name}: {text.decode(errors='replace')[-2000:]}" for name, text in (("stdout", out), ("stderr", err)))
        raise AssertionError(f"{words} took over {timeout} s; {said}") from None
    return subprocess.CompletedProcess(words, process.returncode, out, err)
