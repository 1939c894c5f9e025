"""A stand-in for memlog-tracer, and a process that it can attach memlog to without tracing it: the process makes its connection when the
stand-in asks for it, says Hello on it, and writes down what its control page says. So the host's half is tried alone."""
import pathlib
import shutil
import signal
import subprocess
import time

import harness

PYTHON = "/usr/bin/python3"

# memlog starts it with an empty environment: all that it needs lies beside it. `plan` has a line "TASK WORD" for each task that goes
# otherwise than well; `log` gets its arguments and how it went.
TRACER = """#!/usr/bin/python3 -I
import os, pathlib, socket, sys, time
here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, {e2e!r})
import wire
task, pid, ticks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
plan = dict(line.split(" ", 1) for line in (here / "plan").read_text().splitlines()) if (here / "plan").exists() else dict()
how = plan.get(task, "done")
host = socket.socket(fileno=3)
def log(*words):
    with open(here / "log", "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")
def text(words):
    return (bytes([0xa0 + len(words)]) if len(words) < 32 else b"\\xd9" + bytes([len(words)])) + words.encode()
def finished(outcome, reason="", refused="", of=pid):
    traced = b"\\x96" + wire.number(21) + text(refused) + wire.number(3) + wire.number(2) + wire.number(1500000) + wire.number(0)
    host.send(wire.packet(2, 0, wire.number(1), wire.number(of), wire.number(outcome), text(reason), traced))
    log("finished", task, pid, outcome)
log(*sys.argv[1:])
started = int(pathlib.Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[19])
assert ticks == started, (ticks, started)
if how.startswith("refuse "):
    finished(1, how.partition(" ")[2])
    sys.exit(0)
if how == "gone":
    finished(3)
    sys.exit(0)
if how == "die":
    sys.exit(1)
if how == "hang":
    time.sleep(1000)
if how == "garbage":
    host.send(b"nothing that anybody could understand")
    time.sleep(1000)
if task == "attach":
    if how == "stranger":
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wire.send(host, wire.packet(1, 0, wire.number(1), wire.number(pid), b"\\x00"), [pair[0].fileno()])
    elif how == "another pid":
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wire.send(host, wire.packet(1, 0, wire.number(1), wire.number(os.getppid()), b"\\x00"), [pair[0].fileno()])
        time.sleep(1000)
    else:
        target = wire.connect(str(here / f"target.{{pid}}"))
        target.send(b"connect late" if how == "die first" else b"connect")
        _, (connection,) = wire.receive(target)
        wire.send(host, wire.packet(1, 0, wire.number(1), wire.number(pid), b"\\x00"), [connection])
        os.close(connection)
        if how == "die first":
            sys.exit(1)
        target.recv(16)  # it has the answer to its Hello
        if how == "die late":
            sys.exit(1)
        if how == "wait":
            while not (here / "go").exists():
                time.sleep(0.01)
        if how.startswith("late refuse "):
            finished(1, how.partition("refuse ")[2])
            sys.exit(0)
        finished(0, refused=how.partition("partly ")[2])
        sys.exit(0)
finished(0)
"""

# What it writes: a line "enabled fork_enabled profile" for each change of its newest control page.
TARGET = """
import mmap, os, pathlib, signal, socket, struct, sys, threading, time
signal.alarm(300)  # whatever becomes of the test
sys.path.insert(0, {e2e!r})
import wire
here = pathlib.Path({here!r})
def watch(page):
    before = None
    while True:
        now = struct.unpack_from("<I", page, 12) + struct.unpack_from("<I", page, 48) + struct.unpack_from("<I", page, 28)
        if now != before:
            with open(here / f"page.{{os.getpid()}}", "a") as file:
                file.write("%d %d %d\\n" % now)
            before = now
        time.sleep(0.002)
kept = []
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind(str(here / f"target.{{os.getpid()}}"))
listening.listen()
print("ready", flush=True)
while True:
    asker, _ = listening.accept()
    word = asker.recv(16)
    if word.startswith(b"connect"):
        own, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wire.send(asker, b"x", [others.fileno()])
        others.close()
        while word == b"connect late" and not (here / "go").exists():
            time.sleep(0.002)
        own.send(wire.hello())
        _, fds = wire.receive(own)
        if word == b"connect late":
            (here / "answered").touch()
            continue
        kept.append((own, fds))
        if len(fds) == 4:
            threading.Thread(target=watch, args=(mmap.mmap(fds[2], 4096, mmap.MAP_SHARED, mmap.PROT_READ),), daemon=True).start()
        asker.send(b"%d" % len(fds))
    elif word == b"exec":
        os.execv("/bin/sleep", ["sleep", "1000"])
    elif word == b"child":
        if os.fork() == 0:
            signal.alarm(60)  # it has none of its parent's
            time.sleep(1000)
    asker.close()
"""


class Case(harness.Case):
    """A copy of memlog with the stand-in beside it."""

    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in ("memlog", "memlog-service", "memlog-analyzer", "libmemlog.so"):
            shutil.copy(harness.OUT / name, self.bin / name)
        e2e = str(pathlib.Path(__file__).resolve().parent)
        tracer = self.bin / "memlog-tracer"
        tracer.write_text(TRACER.format(e2e=e2e))
        tracer.chmod(0o755)
        self.target_text = TARGET.format(e2e=e2e, here=str(self.bin))
        self.dumps = self.folder / "dumps-attached"

    def target(self, *words):
        """A process to attach to; its words are for --name."""
        process = subprocess.Popen(
            [PYTHON, "-I", "-c", self.target_text, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def tell(self, target, word):
        import wire
        connection = wire.connect(str(self.bin / f"target.{target.pid}"))
        connection.send(word)
        connection.close()

    def plan(self, **tasks):
        (self.bin / "plan").write_text("".join(f"{task} {how}\n" for task, how in tasks.items()))

    def log(self):
        path = self.bin / "log"
        return path.read_text().splitlines() if path.exists() else []

    def pages(self, target):
        """What its control page has said, as (enabled, fork_enabled, profile)."""
        path = self.bin / f"page.{target.pid}"
        return [tuple(map(int, line.split())) for line in path.read_text().splitlines()] if path.exists() else []

    def command(self, *words, timeout=harness.TIMEOUT):
        return subprocess.run(
            [str(self.bin / "memlog"), *map(str, words)], env=self.environment(), cwd=self.folder, capture_output=True, text=True,
            timeout=timeout, check=False,
        )

    def attach_words(self, *words):
        return [str(self.bin / "memlog"), "attach", "--no-page", "-o", str(self.dumps), *map(str, words)]

    def attach(self, *words, timeout=harness.TIMEOUT):
        return subprocess.run(
            self.attach_words(*words), env=self.environment(), cwd=self.folder, capture_output=True, text=True, timeout=timeout, check=False
        )

    def begin(self, *words, command=None):
        """memlog attach (or another command) that goes on."""
        self.stderr = self.folder / f"stderr.{time.monotonic_ns()}"
        with open(self.stderr, "w") as log:
            process = subprocess.Popen(
                command or self.attach_words(*words), env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
            )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def said(self, words):
        return words in self.stderr.read_text(errors="replace")

    def end(self, process, number=signal.SIGINT):
        process.send_signal(number)
        out, _ = process.communicate(timeout=harness.TIMEOUT)
        return out

    def exit_dump(self):
        (dump,) = self.dumps.glob("*.exit.pftrace")
        return self.report(dump)
