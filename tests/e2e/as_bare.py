"""Small programs, built here, that have to behave under memlog as they do without it."""
import os
import subprocess

import harness


class Case(harness.Case):
    def build(self, name, source, *options, suffix=".c"):
        """A program, or with -shared a library, in the test's folder; its path."""
        (self.folder / (name + suffix)).write_text(source)
        compiler = "gcc" if suffix == ".c" else "g++"
        words = [compiler, "-O1", "-g", "-fno-builtin", "-w", "-o", self.folder / name, self.folder / (name + suffix), *options]
        built = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(built.returncode, 0, built.stdout)
        return self.folder / name

    def bare(self, *program, env=None, stdin=b""):
        """(exit code, stdout, stderr) without memlog."""
        answer = harness.run_words(list(map(str, program)), self.folder, env or self.environment(), stdin, harness.TIMEOUT)
        return answer.returncode, answer.stdout.decode(errors="replace"), answer.stderr.decode(errors="replace")

    def assert_as_bare(self, *program, env=None, options=("-q", "--no-page"), code=0):
        """Runs it both ways; returns the report of the run under memlog."""
        bare = self.bare(*program, env=env)
        self.assertEqual(bare[0], code, f"the program itself, without memlog: {bare}")
        run = self.memlog(*program, env=env, options=options)
        self.assertEqual((run.code, run.out.decode(errors="replace"), run.err), bare)
        return self.exit_report(run)

    def entries(self, report, name):
        return [entry for entry in report["processes"] if entry["name"] == name]


def preloaded(case, library):
    """The environment of a program that has a preload of its own."""
    return case.environment(LD_PRELOAD=os.fspath(library))
