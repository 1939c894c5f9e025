"""A client at whose data the service dies, twice: it is recorded no more, the others go on, and no service dies of it again.

The service is the real one in its real sandbox but for one wound (tests/service/mortal.c): a word in a stream kills it."""
import os
import pathlib
import shutil
import unittest

import harness
import truth

PYTHON = "/usr/bin/python3"
WORD = "memlog-test-poison"  # tests/service/mortal.c

# A child that allocates in a library of that name, all the time; beside it, when the test says so, programs that know their heap.
TREE = """
import ctypes, os, subprocess, sys, time
library, oracle = sys.argv[1:]
child = os.fork()
if child == 0:
    make = ctypes.CDLL(library).plugin_make
    made = 0
    while not os.path.exists("end"):
        make(1000)
        made += 1
        time.sleep(0.001)
    open("made", "w").write(f"{os.getpid()} {made}")
    os._exit(9)
rounds = 0
while not os.path.exists("end"):
    if os.path.exists(f"go{rounds}"):
        assert subprocess.run([oracle]).returncode == 7
        rounds += 1
        open(f"done{rounds}", "w").close()
    time.sleep(0.01)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
print("finished", rounds)
sys.exit(5)
"""


class Poison(harness.Case):
    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name in ("memlog", "memlog-analyzer", "libmemlog.so"):
            shutil.copy2(harness.OUT / name, self.bin / name)
        shutil.copy2(harness.OUT / "mortal", self.bin / "memlog-service")
        self.library = self.folder / f"{WORD}.so"
        shutil.copy2(harness.PROGRAMS / "oracle" / "plugin_small.so", self.library)

    def memlog_command(self, program, options):
        words, folder = super().memlog_command(program, options)
        return [str(self.bin / "memlog"), *words[1:]], folder

    def said(self, text):
        return (self.folder / f"stderr{self.runs}").read_text().count(text)

    def run_tree(self, library, deaths):
        process = self.memlog_start(
            PYTHON, "-c", TREE, library, harness.PROGRAMS / "oracle" / "single", options=("--no-page",),
        )
        self.wait_for(f"{deaths} deaths", lambda: self.said("another one has taken over") >= deaths)
        for number in range(2):
            (self.folder / f"go{number}").touch()
            self.wait_for("the oracle", lambda: (self.folder / f"done{number + 1}").exists())
        (self.folder / "end").touch()
        out, _ = process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual((process.returncode, out), (5, b"finished 2\n"))
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        poisonous = int((self.folder / "made").read_text().split()[0])
        return self.report(dump), poisonous

    def assert_books_are_right(self, report):
        books = truth.load(self.truth_folder)
        self.assertEqual(len(books), 2)
        for book in books:
            entry = truth.find_process(report, book)
            self.assertTrue(entry["complete"], entry["trouble"])
            self.assertEqual(truth.compare_process(entry, book), [])

    def test_whose_data_kills_two_services_is_recorded_no_more_and_the_others_are(self):
        report, poisonous = self.run_tree(self.library, 2)
        self.assertEqual(self.said("another one has taken over"), 2)
        why = "recorded no more: 2 services in a row died while they read it"
        self.assertEqual(self.said(f"is {why}"), 1)
        self.assertEqual([(one["pid"], one["reason"]) for one in report["dump"]["not_profiled"]], [(poisonous, why)])
        self.assertEqual(len(report["dump"]["gaps"]), 4)  # of each: what it knew, and what nobody saw
        self.assertTrue(all(f"signal {int(harness.signal.SIGABRT)}" in gap["reason"] for gap in report["dump"]["gaps"][1::2]))
        self.assert_books_are_right(report)
        self.assertFalse(any(entry["pid"] == poisonous and entry["complete"] for entry in report["processes"]))

    def test_without_the_word_it_is_the_service_that_is_shipped(self):
        harmless = self.folder / "harmless.so"
        shutil.copy2(self.library, harmless)
        report, harmless_pid = self.run_tree(harmless, 0)
        self.assertTrue(report["dump"]["complete"])
        self.assert_books_are_right(report)
        made = int((self.folder / "made").read_text().split()[1])
        (entry,) = [entry for entry in report["processes"] if entry["pid"] == harmless_pid]
        stacks = [stack for stack in entry["stacks"] if any(frame["function"] == "small_alloc" for frame in stack["frames"])]
        self.assertEqual(sum(stack["total_blocks"] for stack in stacks), made)


if __name__ == "__main__":
    unittest.main(verbosity=2)
