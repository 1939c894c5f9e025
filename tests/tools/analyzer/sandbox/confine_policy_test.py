"""Each line of tools/analyzer/sandbox/policy is used: where it kills, its exercise dies of SIGSYS; where none does, it comes to its end. So a line that
is taken out is missed, and one that nothing uses is found."""
import fcntl
import functools
import os
import pathlib
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "e2e"))
import harness  # noqa: E402  (tests/e2e/harness.py)

EXERCISE = harness.OUT / "confine_exercise"
PROGRAM = "/usr/bin/sort"
INPUT = "/etc/passwd"

# What qsort(), abort() and isatty() of glibc 2.36 ask for, and those of later ones do not: one analyzer runs on all of them. By call and exercise.
OF_OLDER_LIBC = {("sysinfo", "report"), ("rt_sigprocmask", "abort"), ("ioctl", "report")} if tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split("."))) > (2, 36) else set()


def lines():
    """(number, call, exercise) of each line."""
    answer = subprocess.run([EXERCISE, "--lines"], stdout=subprocess.PIPE, text=True, check=False)
    for line in answer.stdout.splitlines():
        number, call, exercise = line.split()
        yield int(number), call, exercise


class Lines(harness.Case):
    def setUp(self):
        super().setUp()
        self.dump = self.exit_report_file(self.memlog(PROGRAM, INPUT))
        self.output = self.folder / "output"

    def exit_report_file(self, run):
        self.exit_report(run)
        return run.dumps()[0]

    def ways(self):
        """exercise -> (words, what else it needs, how it ends)."""
        convert = ("convert", "--to=pprof", "-o", self.output, self.dump)
        folder = self.folder / "symbols"
        folder.mkdir(exist_ok=True)
        (folder / "a").write_bytes(pathlib.Path(PROGRAM).read_bytes())
        code = self.folder / "perf-1.map"
        code.write_text("1000 10 made_at_run_time\n")
        index = {"MEMLOG_SYMBOLIZER_MODE": "index", "MEMLOG_BINARY_PATH": str(folder)}
        return {
            "report": (("report", self.dump), {}, 0),
            "convert": (convert, {}, 0),
            "terminal": (("report", self.dump), {"stdout": self.terminal()}, 0),
            "index": (("report", self.dump), {"env": self.environment(**index)}, 0),
            "keep": (("report", self.dump), {"env": self.environment(MEMLOG_SYMBOL_CACHE=tempfile.mkdtemp(dir=self.folder))}, 0),
            "full_disk": (convert, {"preexec_fn": self.no_disk}, 1),
            "read_elf": (("read_elf", PROGRAM), {}, 0),
            "pipe": (("report", "/dev/stdin"), {"stdin": self.pipe()}, 0),
            "perf_map": (("perf_map", code), {}, 0),
            "abort": (("abort",), {}, -signal.SIGABRT),
            "corrupt": (("corrupt",), {}, -signal.SIGABRT),
        }

    @functools.cache
    def terminal(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        return theirs

    def pipe(self):
        """One with a dump in it."""
        ours, theirs = os.pipe()
        fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(theirs, self.dump.read_bytes())
        os.close(theirs)
        self.addCleanup(os.close, ours)
        return ours

    def no_disk(self):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    def run_exercise(self, line, exercise):
        words, changes, end = self.ways().get(exercise, ((exercise,), {}, 0))
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "env": self.environment(), **changes}
        answer = subprocess.run(
            [EXERCISE, str(line), *map(str, words)], cwd=self.folder, stderr=subprocess.PIPE,
            timeout=harness.TIMEOUT, check=False, **given,
        )
        return answer.returncode, end, answer.stderr.decode(errors="replace")

    def test_each_line_is_missed_where_it_kills(self):
        if not self.walls_stand():
            self.skipTest("built without walls: a sanitizer's process looks at this one")
        for number, call, exercise in lines():
            if (call, exercise) in OF_OLDER_LIBC:
                continue
            with self.subTest(line=number, call=call):
                code, _, said = self.run_exercise(number, exercise)
                self.assertEqual(code, -signal.SIGSYS, f"nothing uses it in `{exercise}`: {said}")

    def test_where_none_kills_every_exercise_ends_as_it_should(self):
        for exercise in sorted({exercise for _, _, exercise in lines()}):
            with self.subTest(exercise=exercise):
                code, end, said = self.run_exercise(0, exercise)
                self.assertEqual(code, end, said)

    def walls_stand(self):
        number = next(number for number, _, exercise in lines() if exercise == "fstat")
        return self.run_exercise(number, "fstat")[0] == -signal.SIGSYS


if __name__ == "__main__":
    unittest.main(verbosity=2)
