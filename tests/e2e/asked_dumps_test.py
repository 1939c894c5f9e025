"""Dumps that somebody asks for: by a person in his own words, of one role, at each new peak of the tree."""
import json
import subprocess
import unittest

import harness

PYTHON = "/usr/bin/python3"

# A parent and two children, of which one says that it is a renderer; they hold so much and wait.
LARGE = """
import os, time
kept = b"x" * (64 << 20)
if os.fork() == 0:
    kept = None
    os.execv("/usr/bin/python3", ["python3", "-c", "import os, time\\nopen('small', 'w').close()\\nwhile not os.path.exists('end'): time.sleep(0.01)"])
os.wait()
"""

TREE = """
import os, sys, time
def hold(count, name, *words):
    if os.fork() == 0:
        os.execv(sys.executable, ["python3", "-c", "import ctypes, time\\nctypes.CDLL(None).malloc(%d)\\nopen(%r, 'w').close()\\n"
                 "import os\\nwhile not os.path.exists('end'): time.sleep(0.01)" % (count, name), *words])
hold(700001, "renderer", "--type=renderer")
hold(700002, "other")
os.wait()
os.wait()
"""

# Steps of a mebibyte and a half, each let go of before the next: only the peak keeps them.
STEPS = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
size = 0
while not os.path.exists("end"):
    if os.path.exists("go%d" % (size + 1)):
        size += 1
        libc.free(libc.malloc(size * 4000000))
        open("done%d" % size, "w").close()
    time.sleep(0.005)
"""


class AskedDumps(harness.Case):
    def command(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), *map(str, words)], env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT,
            check=False,
        )

    def dumped(self, *words):
        answer = self.command("dump", *words)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        return answer.stdout.removesuffix("\n")

    def begin_tree(self):
        process = self.memlog_start(PYTHON, "-c", TREE)
        for name in ("renderer", "other"):
            self.wait_for(name, (self.folder / name).exists)
        return process

    def test_a_dump_of_the_processes_with_much_private_memory(self):
        process = self.memlog_start(PYTHON, "-c", LARGE)
        self.wait_for("the child", (self.folder / "small").exists)
        rows = json.loads(self.command("ps", "--json").stdout)["processes"]
        large = {row["pid"] for row in rows if row["recording"] and row["parent_pid"] not in {one["pid"] for one in rows}}
        (both,) = [{one["pid"] for one in self.report(self.dumped())["processes"] if one["state"] == "running"}]
        self.assertEqual(len(both), 2)
        (chosen,) = self.report(self.dumped("--min-private=48M", "--role=browser"))["processes"]
        self.assertEqual({chosen["pid"]}, large)
        (chosen,) = self.report(self.dumped("--min-private=48M"))["processes"]
        self.assertEqual({chosen["pid"]}, large)
        self.assertEqual({one["pid"] for one in self.report(self.dumped("--min-private=4K"))["processes"]}, both)
        for words in (("--min-private=1T",), ("--min-private=48M", "--role=gpu"), ("--min-private=48M", *(both - large))):
            answer = self.command("dump", *words)
            self.assertEqual((answer.returncode, answer.stdout), (125, ""), words)
            self.assertIn("no such process that is recorded has", answer.stderr)
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)

    def sizes(self, report):
        return sorted(stack["live_bytes"] for one in report["processes"] for stack in one["stacks"] if stack["live_bytes"] > 600000)

    def test_a_dump_of_one_role_with_a_reason_that_every_form_shows(self):
        process = self.begin_tree()
        self.wait_for("the roles", lambda: self.command("ps").stdout.count(" renderer ") == 1)
        path = self.dumped("--role=renderer", "--reason=after the tenth tab")
        self.assertRegex(path, r"/0001\.manual\.pftrace$")
        report = self.report(path)
        self.assertEqual([one["role"] for one in report["processes"]], ["renderer"])
        self.assertEqual(self.sizes(report), [700001])
        self.assertEqual(report["dump"]["reason"], "manual")
        self.assertEqual((report["dump"]["trigger"]["kind"], report["dump"]["trigger"]["reason"]), ("asked", "after the tenth tab"))
        self.assertIn("asked for    after the tenth tab\n", self.command("report", "--full", path).stdout)
        # A plain one behind it in the same sequence: of everything, and nobody has said why.
        path = self.dumped()
        self.assertRegex(path, r"/0002\.manual\.pftrace$")
        report = self.report(path)
        self.assertEqual(self.sizes(report), [700001, 700002])
        self.assertNotIn("trigger", report["dump"])
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)

    def test_a_reason_is_text_of_one_line_whatever_was_typed(self):
        process = self.begin_tree()
        path = self.dumped("--reason=\x1b[31mred\nline \u202egnp \udcff<b>\u00e4")
        self.assertEqual(self.report(path)["dump"]["trigger"]["reason"], "?[31mred?line ?gnp ?<b>\u00e4")
        # An upload of it says nothing of the words.
        shown = subprocess.run(
            [str(harness.MEMLOG), "upload", "--dry-run", "--form=json", path], env=self.environment(), capture_output=True, timeout=60, check=False,
        )
        self.assertNotIn(b"gnp", shown.stdout)
        for words, says in (
            (["--reason=" + "x" * 257], "at most 256 bytes"), (["--role=rendrer"], "did you mean 'renderer'?"), (["--rol=x"], "'--role'"),
        ):
            answer = self.command("dump", *words)
            self.assertEqual(answer.returncode, 2, words)
            self.assertIn(says, answer.stderr)
        answer = self.command("dump", "--role=gpu")
        self.assertEqual((answer.returncode, answer.stdout), (125, ""))
        self.assertIn("no process of that role is recorded", answer.stderr)
        self.assertEqual(len(list(process.memlog_folder.glob("*.pftrace"))), 1)
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)

    def test_each_new_peak_makes_a_dump_and_no_other_does(self):
        process = self.memlog_start(PYTHON, "-c", STEPS, options=("--no-page", "--dump-at-peak=3M"))
        peaks = lambda: sorted(process.memlog_folder.glob("*.peak.pftrace"))
        for number in (1, 2, 3):
            before = len(peaks())
            (self.folder / f"go{number}").touch()
            self.wait_for("the step", (self.folder / f"done{number}").exists)
            self.wait_for("its dump", lambda: len(peaks()) > before)
        known = len(peaks())
        tops = [self.report(dump)["tree"]["peak_bytes"] for dump in peaks()]
        self.assertEqual(tops, sorted(tops))
        self.assertGreaterEqual(min(b - a for a, b in zip(tops, tops[1:])), 3 << 20)
        # Who held the peak is known to the byte, although it holds nothing any more.
        last = self.report(peaks()[-1])
        self.assertEqual(last["dump"]["reason"], "peak")
        self.assertRegex(last["dump"]["trigger"]["reason"], r"^the tree's peak is 1[1-4]\.\d MiB, at its last dump it was \d+\.\d MiB$")
        (top,) = [stack for stack in last["tree"]["stacks"] if stack["peak_bytes"] >= 12000000]
        self.assertEqual((top["peak_bytes"], top["live_bytes"]), (12000000, 0))
        # Asked of the run itself, in between: one sequence, and no peak by that.
        self.assertRegex(self.dumped("--reason=by hand"), rf"/{known + 1:04}\.manual\.pftrace$")
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        self.assertEqual(len(peaks()), known)
        self.assertEqual(len(list(process.memlog_folder.glob(f"{known + 2:04}.exit.pftrace"))), 1)
        process.memlog_log.seek(0)
        self.assertIn(b".peak.pftrace\n", process.memlog_log.read())

    def test_what_ended_processes_left_raises_no_peak(self):
        """Six children one after the other, each of which leaves 8 MiB: the tree never holds more than those of one."""
        script = "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        kept = bytearray(8 << 20)\n        time.sleep(0.3)\n        os._exit(0)\n    os.wait()\n"
        run = self.memlog(PYTHON, "-c", script, options=("-q", "--no-page", "--dump-at-peak=3M"))
        self.assertEqual(run.code, 0)
        self.assertEqual(len(list(run.folder.glob("*.peak.pftrace"))), 1)
        (dump,) = run.folder.glob("*.exit.pftrace")
        tree = self.report(dump)["tree"]
        self.assertGreater(tree["left_bytes"], 6 * (8 << 20))
        self.assertLess(tree["peak_bytes"], 2 * (8 << 20))


if __name__ == "__main__":
    unittest.main(verbosity=2)
