"""Programs that memlog is attached to while they run: built, begun, told what to do, and held against their own books."""
import json
import os
import pathlib
import signal
import subprocess
import time

import harness

SOURCES = harness.ROOT / "tests" / "oracle"
AS_WRITTEN = ("-D_GNU_SOURCE", "-O1", "-g", "-fno-builtin", "-fno-inline", "-fno-optimize-sibling-calls", "-fomit-frame-pointer", "-pthread")
SITES = ("by_malloc", "by_calloc", "by_realloc", "by_aligned", "by_posix")
# Debian's compiler leaves out the index of frames where it links statically or with musl; other systems' compilers do not.
FRAMES = "-Wl,--eh-frame-hdr"
BUILDS = {
    "glibc": ("gcc",),
    "glibc, C++": ("g++",),
    "static glibc": ("gcc", "-static", FRAMES),
    "musl": ("musl-gcc", FRAMES),
    "static musl": ("musl-gcc", "-static", FRAMES),
    "unindexed glibc": ("gcc", "-static"),
    "unindexed musl": ("musl-gcc",),
    "frameless musl": ("musl-gcc", "-fno-asynchronous-unwind-tables", "-fno-exceptions"),
}
KINDS = ("glibc", "static glibc", "musl", "static musl")


def build(source, program, kind="glibc", options=()):
    """A program of tests/oracle, with another libc than the build's."""
    words = [*BUILDS[kind], *AS_WRITTEN, f"-I{harness.ROOT}", *options, "-o", str(program), str(SOURCES / source)]
    answer = harness.run_words(words, harness.ROOT, None, b"", harness.TIMEOUT)
    if answer.returncode != 0:
        raise AssertionError(answer.stderr.decode(errors="replace"))
    return program


class Target:
    """A running tests/oracle/attached.c, or any program of which only the pid matters."""

    def __init__(self, case, words, env=None, **how):
        self.case = case
        self.process = subprocess.Popen(
            list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
            env=env or case.environment(), cwd=case.folder, start_new_session=True, **how,
        )
        self.pid = self.process.pid
        case.addCleanup(self.clean)

    def clean(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass

    def ready(self):
        self.case.assertEqual(self.line(), "ready")
        return self

    def line(self):
        return self.process.stdout.readline().strip()

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.line()

    def books(self):
        return json.loads(self.tell("books"))

    def end(self, code=7):
        self.process.stdin.write(f"end {code}\n")
        self.process.stdin.flush()
        self.process.wait(harness.TIMEOUT)
        self.case.assertEqual((self.process.returncode, self.process.stderr.read()), (code, ""))


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.sessions = 0

    def command(self, *words, **how):
        return subprocess.run(
            [str(harness.MEMLOG), *map(str, words)], env=self.environment(), cwd=self.folder, capture_output=True, text=True,
            timeout=harness.TIMEOUT, check=False, **how,
        )

    def program(self, kind="glibc", source="attached.c"):
        program = self.folder / f"{source.removesuffix('.c')} {kind}".replace(" ", "_")
        return program if program.exists() else build(source, program, kind)

    def target(self, kind="glibc", **how):
        return Target(self, [self.program(kind)], **how).ready()

    def begin(self, *words, attached=1):
        """memlog attach that goes on: once it says that it is attached to so many."""
        self.sessions += 1
        folder = self.folder / f"dumps{self.sessions}"
        log = self.folder / f"stderr.attach{self.sessions}"
        with open(log, "w") as stderr:
            process = subprocess.Popen(
                [str(harness.MEMLOG), "attach", "--no-page", "-o", str(folder), *map(str, words)], env=self.environment(), cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True,
            )
        process.memlog_folder, process.memlog_log = folder, log

        def end():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

        self.addCleanup(end)
        # It can be told to start and stop recording only once it serves.
        self.wait_for("the attachment", lambda: process.poll() is not None or log.read_text().count("attached to ") >= attached)
        self.assertIsNone(process.poll(), log.read_text())
        return process

    def finish(self, session):
        """The report of its dump at the end."""
        if session.poll() is None:
            session.send_signal(signal.SIGINT)
        code = session.wait(harness.TIMEOUT)
        self.assertEqual(code, 0, session.memlog_log.read_text())
        (dump,) = session.memlog_folder.glob("*.exit.pftrace")
        return self.report(dump)

    def hold(self, entry, books, whole=None, frames=True):
        """One process of a report against its books; `whole`: the process's figures are their sum, too, and so many frees are unknown.
        Returns the differences."""
        wrong = []

        def differs(what, said, true):
            if said != true:
                wrong.append(f"{what}: memlog says {said}, the books {true}")

        figures = ("total_bytes", "total_blocks", "live_bytes", "live_blocks")
        for site in SITES:
            # `step` and `allocate` call them: a stack that is cut short would be no stack of the epoch.
            stacks = [stack for stack in entry["stacks"] if stack["frames"] and stack["frames"][0]["function"] == site]
            for stack in stacks:
                if frames and "epoch" not in [frame["function"] for frame in stack["frames"]]:
                    wrong.append(f"{site}: a stack without its epoch: {[frame['function'] for frame in stack['frames']]}")
            for figure, true in zip(figures, books[site]):
                differs(f"{site}: {figure}", sum(stack[figure] for stack in stacks), true)
        if whole is not None:
            for index, figure in enumerate(figures):
                differs(f"whole process: {figure}", entry[figure], sum(books[site][index] for site in SITES))
            differs("unknown_frees", entry["unknown_frees"], whole)
        differs("lost_events", entry["lost_events"], 0)
        differs("truncated_stacks", entry["truncated_stacks"], 0)
        differs("complete", entry["complete"], True)
        differs("trouble", entry["trouble"], "")
        return wrong

    def assert_held(self, entry, books, whole=None, frames=True):
        wrong = self.hold(entry, books, whole, frames)
        self.assertEqual(wrong, [], f"{entry['name']} {entry['pid']}")

    def entry(self, report, pid, **fields):
        found = [one for one in report["processes"]
                 if one["pid"] == pid and all(one[name] == value for name, value in fields.items())]
        self.assertEqual(len(found), 1, [(one["pid"], one["name"], one["state"]) for one in report["processes"]])
        return found[0]


def text_of(pid):
    """All code and read-only data of files that a process has mapped, as its memory is now: address -> bytes."""
    found = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            fields = line.split()
            if len(fields) > 5 and fields[5].startswith("/") and not fields[5].startswith("/memfd:") and fields[1][0] == "r" and fields[1][1] == "-":
                start, end = (int(part, 16) for part in fields[0].split("-"))
                memory.seek(start)
                found[start, fields[5]] = memory.read(end - start)
    return found


def files_of(pid):
    """Open descriptors: number -> what it is."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            pass
    return found


def start_ticks(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
