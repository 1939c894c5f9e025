"""Very many of something under memlog: processes at once, processes in a row, threads, live blocks, stacks. Each scene runs to
the end with the program's own result; what is found on the way comes back as figures. `many_test.py` runs a short form of each,
`tools/dev/soak --many` the long one."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import harness

PYTHON = "/usr/bin/python3"
LARGE = harness.PROGRAMS / "oracle" / "large"
OVERLOAD = harness.PROGRAMS / "oracle" / "overload"
LARGE_CODE = 42
PAGE = 4096
LONG_TIMEOUT = 900
# Calls of a program beside those that it counts: stdio, threads' starts, libc's own.
BESIDE = 5000
# Of a report with hundreds of thousands of stacks; its sums are of all of them.
STACKS = 100
# Ended processes beyond --keep-processes that a running service may still have apart (service/session/fold.h, patience).
SLACK = 1000
PROCESSES_MAX = 65536  # memlog.service.kMaxClients

# A root that stays while others come and go: argv is the busy one's milliseconds, then the program.
ROOT = """
import subprocess, sys
def start(words):
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def go(process):
    process.stdin.write("\\n")
    process.stdin.flush()
busy = start([sys.argv[1], "1", sys.argv[2], "64"])
assert busy.stdout.readline() == "ready\\n"
print("ready", flush=True)
sys.stdin.readline()
go(busy)
program = start(sys.argv[3:])
print(program.stdout.readline(), end="", flush=True)
sys.stdin.readline()
go(program)
answer = program.stdout.readline().strip()
code = program.wait()
busy_answer = busy.stdout.readline().split()
busy.wait()
print("gone", answer, code, busy_answer[-1], flush=True)
sys.stdin.readline()
sys.exit(7)
"""

# A few at a time: a host that is asked by hundreds at once answers the last of them too late where others want the machine, too.
AT_ONCE = """
import subprocess, sys
count = int(sys.argv[1])
all = []
while len(all) < count:
    some = [subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) for _ in range(min(20, count - len(all)))]
    for process in some:
        process.stdin.write(b"x")
        assert process.stdout.read(1) == b"x"
    all += some
print("up", flush=True)
sys.stdin.readline()
good = sum(process.communicate(b"%d" % process.pid)[0] == b"%d" % process.pid and process.returncode == 0 for process in all)
print("gone", good, flush=True)
sys.stdin.readline()
sys.exit(7)
"""

IN_A_ROW = 'i=0; while [ $i -lt "$1" ]; do /bin/true || exit 1; i=$((i+1)); done; echo "gone $i"; read line; exit 7'

# Forked children, each with allocations of its own, and then a program that comes too late.
TOO_MANY = """
import os, subprocess, sys
count = int(sys.argv[1])
for _ in range(count):
    child = os.fork()
    if child == 0:
        kept = [bytearray(100) for _ in range(10)]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("gone", count, flush=True)
sys.stdin.readline()
print("late", subprocess.run(["/bin/true"]).returncode, flush=True)
sys.stdin.readline()
sys.exit(7)
"""


class Wrong(Exception):
    """Something that must never be."""


def demand(condition, what):
    if not condition:
        raise Wrong(what)


def status_of(pid, key):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise Wrong(f"/proc/{pid}/status has no {key}")


class Scene:
    """One `memlog run` whose program speaks on stdin and stdout; `with` ends it."""

    def __init__(self, folder, program, options=()):
        self.folder = pathlib.Path(folder)
        self.figures = {}
        (self.folder / "run").mkdir(exist_ok=True)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        self.environment["XDG_RUNTIME_DIR"] = str(self.folder / "run")
        self.dumps = self.folder / "dumps"
        words = [str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(self.dumps), *options, "--", *map(str, program)]
        self.log = open(self.folder / "stderr", "wb+")
        self.process = subprocess.Popen(
            words, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True, text=True
        )
        self.service = harness.service_of(self.process.pid)
        self.begun = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.dumps, ignore_errors=True)

    def expect(self, pattern):
        line = self.process.stdout.readline()
        found = re.fullmatch(pattern, line.strip())
        demand(found, f"the program said {line!r}, not {pattern!r}")
        return found

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def resident(self):
        return status_of(self.service, "VmRSS")

    def command(self, *words):
        """(stdout, seconds) of a memlog command."""
        begun = time.monotonic()
        answer = subprocess.run(
            [str(harness.MEMLOG), *words], env=self.environment, capture_output=True, text=True, timeout=LONG_TIMEOUT, check=False
        )
        demand(answer.returncode == 0, f"memlog {words[0]}: {answer.stderr}")
        return answer.stdout, round(time.monotonic() - begun, 3)

    def ps(self):
        text, self.figures["ps_s"] = self.command("ps", "--json")
        return json.loads(text)["processes"]

    def until(self, count, wanted, what):
        """The last of them may still be starting; while more come it is waited for them, however slowly."""
        most = count()
        deadline = time.monotonic() + harness.TIMEOUT
        while most < wanted:
            demand(time.monotonic() < deadline, f"{most} of {wanted} {what}, and no more come")
            time.sleep(0.05)
            now = count()
            if now > most:
                most, deadline = now, time.monotonic() + harness.TIMEOUT

    def dump(self):
        """A dump now, as a parsed report."""
        path, self.figures["dump_s"] = self.command("dump")
        self.figures["dump_bytes"] = os.stat(path.strip()).st_size
        return self.report(path.strip(), "report_s")

    def report(self, path, name):
        text, self.figures[name] = self.command("report", "--json", f"--limit={STACKS}", str(path))
        report = json.loads(text)
        wrong = harness.unbalanced(report)
        demand(not wrong, wrong)
        _, self.figures[name.replace("report", "text")] = self.command("report", str(path))
        return report

    def settle(self, before_bytes):
        """What the service holds once its clients have gone: the least within a while."""
        least = self.resident()
        deadline = time.monotonic() + harness.TIMEOUT
        while time.monotonic() < deadline and least > before_bytes:
            time.sleep(0.1)
            now = self.resident()
            if now >= least and time.monotonic() > deadline - harness.TIMEOUT + 3:
                break
            least = min(least, now)
        return least

    def finish(self, code):
        self.figures["peak_bytes"] = status_of(self.service, "VmHWM")
        self.figures["host_bytes"] = status_of(self.process.pid, "VmHWM")
        self.go()
        ended = self.process.wait(timeout=LONG_TIMEOUT)
        demand(ended == code, f"it ended with {ended}, not {code}")
        self.figures["seconds"] = round(time.monotonic() - self.begun, 1)
        dumps = list(self.dumps.glob("*.exit.pftrace"))
        demand(len(dumps) == 1, f"{len(dumps)} dumps at the end")
        self.figures["exit_dump_bytes"] = dumps[0].stat().st_size
        return self.report(dumps[0], "exit_report_s")


def named(report, name):
    return [entry for entry in report["processes"] if entry["name"] == name]


def count(entries):
    return sum(entry.get("folded_processes", 1) for entry in entries)


def late(report):
    """Whom the host answered too late: on a machine that is too busy they go on without it, and are named."""
    return [entry for entry in report["dump"]["not_profiled"] if "found no host in time" in entry["reason"]]


def no_loss(report, but=()):
    """Everybody complete, but for programs that overload memlog by their nature: their losses are counted."""
    for entry in report["processes"]:
        if entry["name"] not in but:
            demand(entry["complete"], f"{entry['name']} is not complete: {entry['trouble']}")


def at_once(folder, processes):
    """So many processes at the same time."""
    with Scene(folder, [PYTHON, "-c", AT_ONCE, processes]) as scene:
        before = scene.resident()
        scene.expect("up")
        found = {}

        def told():
            """Those of whom something is known, and those who are named because nothing is."""
            found["report"] = scene.dump()
            seen = sum(entry["live_blocks"] > 0 for entry in named(found["report"], "cat"))
            return seen + len(late(found["report"]))

        scene.until(told, processes, "are in the dump")
        scene.ps()
        scene.figures["host_descriptors"] = len(os.listdir(f"/proc/{scene.process.pid}/fd"))
        left_out = scene.figures["left_out"] = len(late(found["report"]))
        no_loss(found["report"])
        scene.go()
        scene.expect(f"gone {processes}")
        scene.figures["after_bytes"] = scene.settle(before)
        report = scene.finish(7)
        demand(count(named(report, "cat")) + left_out == processes, "so has the last one")
        no_loss(report)
        return scene.figures


def in_a_row(folder, processes, keep=None):
    """So many short-lived processes one after another; those beyond the limit are folded."""
    options = () if keep is None else (f"--keep-processes={keep}",)
    with Scene(folder, ["/bin/sh", "-c", IN_A_ROW, "sh", processes], options) as scene:
        scene.expect(f"gone {processes}")
        rows = scene.ps()
        scene.figures["ps_rows"] = len(rows)
        scene.figures["after_bytes"] = scene.resident()
        report = scene.finish(7)
        scene.figures["entries"] = len(report["processes"])
        found = named(report, "true")
        demand(count(found) == processes, f"{count(found)} processes in the report")
        no_loss(report)
        # They are all alike: each entry has as many times one's figures as it stands for processes.
        for key in ("live_bytes", "live_blocks", "peak_bytes", "total_bytes", "total_blocks", "events"):
            each = {entry[key] / entry.get("folded_processes", 1) for entry in found}
            demand(len(each) == 1, f"{key} of one: {each}")
        sums = {key: sum(entry[key] for entry in report["processes"]) for key in ("live_bytes", "total_bytes", "total_blocks")}
        demand(all(harness.shown(report, key) == value for key, value in sums.items()), f"the tree is not the sum: {sums}")
        return scene.figures


def too_many(folder, beyond):
    """More processes than one run may have: the first PROCESSES_MAX are followed, who comes later runs all the same and is named."""
    processes = PROCESSES_MAX + beyond
    with Scene(folder, [PYTHON, "-c", TOO_MANY, processes]) as scene:
        scene.expect(f"gone {processes}")
        scene.figures["ps_rows"] = len(scene.ps())
        scene.go()
        scene.expect("late 0")
        scene.figures["after_bytes"] = scene.resident()
        report = scene.finish(7)
        scene.figures["entries"] = len(report["processes"])
        demand(count(report["processes"]) == PROCESSES_MAX, f"{count(report['processes'])} processes in the report")
        no_loss(report)
        left_out = [entry for entry in report["dump"]["not_profiled"] if "too many processes" in entry["reason"]]
        scene.figures["not_profiled"] = len(left_out)
        demand(len(left_out) >= beyond, f"{len(left_out)} are named as left out")
        return scene.figures


def make(folder, jobs, compiles):
    """A parallel build: so many small jobs, so many of them compilations, by make -j."""
    folder = pathlib.Path(folder)
    lines = ["all: " + " ".join(f"j{i}" for i in range(jobs)) + " " + " ".join(f"c{i}.o" for i in range(compiles))]
    lines += [f"j{i}:\n\t@/bin/sh -c 'x=$$(/bin/echo {i}) && /usr/bin/test $$x -eq {i} && echo $$x > done{i}'" for i in range(jobs)]
    for i in range(compiles):
        (folder / f"c{i}.c").write_text(f"#include <stdio.h>\nint f{i}(void) {{ return puts(\"{i}\"); }}\n")
        lines.append(f"c{i}.o: c{i}.c\n\t@gcc -c -o $@ $<")
    (folder / "Makefile").write_text("\n".join(lines) + "\n")
    script = f'cd "$1" && make -s -j8 || exit 9; echo gone $(ls done* | wc -l) $(ls *.o | wc -l); read line; exit 7'
    with Scene(folder, ["/bin/sh", "-c", script, "sh", folder]) as scene:
        scene.expect(f"gone {jobs} {compiles}")
        scene.figures["after_bytes"] = scene.resident()
        scene.ps()
        report = scene.finish(7)
        scene.figures["processes"] = count(report["processes"])
        scene.figures["entries"] = len(report["processes"])
        demand(scene.figures["processes"] >= jobs + 3 * compiles, "all of them are in the report")
        no_loss(report)
        for key in ("live_bytes", "total_bytes", "total_blocks"):
            demand(harness.shown(report, key) == sum(entry[key] for entry in report["processes"]), f"{key}: the tree is the sum")
        return scene.figures


def large(folder, kind, number, busy_ms):
    """One process with very many of something, beside a busy one that a dump must not hold up."""
    with Scene(folder, [PYTHON, "-c", ROOT, OVERLOAD, busy_ms, LARGE, kind, number]) as scene:
        scene.expect("ready")
        before = scene.resident()
        scene.go()
        bytes_held, blocks_held = map(int, scene.expect(r"up (\d+) (\d+)").groups())
        scene.figures["held_bytes"] = scene.resident()
        scene.ps()
        report = scene.dump()
        (entry,) = named(report, "large")
        # A machine that is too slow for it loses counted events; then it says so, and nothing else is asked.
        demand(entry["complete"] != (entry["lost_events"] > 0 or harness.stayed_full(entry)), entry["trouble"])
        scene.figures["lost"] = entry["lost_events"]
        if entry["complete"]:
            demand(blocks_held <= entry["live_blocks"] <= blocks_held + BESIDE, f"{entry['live_blocks']} live, not {blocks_held}")
            demand(bytes_held <= entry["live_bytes"], f"{entry['live_bytes']} live, not {bytes_held}")
        scene.figures["stack_nodes"] = entry["stack_nodes"]
        scene.go()
        scene.expect(f"gone done ok {LARGE_CODE} ok")
        scene.figures["before_bytes"] = before
        scene.figures["after_bytes"] = scene.settle(before)
        report = scene.finish(7)
        (entry,) = named(report, "large")
        demand(not entry["complete"] or entry["live_blocks"] <= BESIDE, "what was freed is gone")
        scene.figures["lost"] = entry["lost_events"]
        scene.figures["lost_too_early"] = harness.lost_too_early(entry)
        scene.figures["longest_wait_ms"] = entry["accounting"]["longest_wait_ns"] // 1000000
        (busy,) = named(report, "overload")
        scene.figures["busy_waits"] = busy["accounting"]["waits"]
        scene.figures["busy_longest_wait_ms"] = busy["accounting"]["longest_wait_ns"] // 1000000
        scene.figures["busy_lost"] = busy["lost_events"]
        scene.figures["busy_lost_too_early"] = harness.lost_too_early(busy)
        return scene.figures


# name -> (short, long)
SCENES = {
    "at once": (lambda folder: at_once(folder, 300), lambda folder: at_once(folder, 1000)),
    "in a row": (lambda folder: in_a_row(folder, 1000, 200), lambda folder: in_a_row(folder, 10000)),
    # No short form: it is the limit itself that is reached; tests/host/engine/processes/member_test.c has the refusal.
    "too many": (None, lambda folder: too_many(folder, 64)),
    "make -j": (lambda folder: make(folder, 100, 6), lambda folder: make(folder, 3000, 300)),
    "threads": (lambda folder: large(folder, "threads", 300, 2000), lambda folder: large(folder, "threads", 1000, 10000)),
    "blocks": (lambda folder: large(folder, "blocks", 2000000, 5000), lambda folder: large(folder, "blocks", 20000000, 40000)),
    "nodes": (lambda folder: large(folder, "nodes", 16, 5000), lambda folder: large(folder, "nodes", 18, 40000)),
}


def play_all(names, long_form):
    """Each by itself in a folder of its own; prints the figures. The first that goes wrong raises."""
    for name in names or SCENES:
        with tempfile.TemporaryDirectory(prefix="memlog-many.") as folder:
            figures = SCENES[name][long_form](folder)
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in figures.items()), flush=True)
