"""Which dump is meant: nothing means the newest run here, a folder means its newest dump; what was chosen is said on stderr."""
import os
import pathlib
import shutil
import unittest

import harness

PROGRAM = ("/bin/sh", "-c", "x=$(head -c 100000 /dev/zero | tr '\\0' x); sleep 0.3")


class Newest(harness.Case):
    def setUp(self):
        super().setUp()
        self.here = self.folder / "here"
        self.here.mkdir()

    def say(self, *words, code=0, cwd=None):
        answer = harness.run_words([str(harness.MEMLOG), *words], cwd or self.here, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stderr)
        return answer.stdout, answer.stderr.decode()

    def record(self, name):
        answer = harness.run_words([str(harness.MEMLOG), "run", "-q", "--no-page", "-o", name, "--", *PROGRAM], self.here, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return f"{name}/0001.exit.pftrace"

    def test_without_a_dump_it_is_the_newest_run_here(self):
        older, newer = self.record("b"), self.record("a")
        (self.here / "0000.exit.pftrace").touch()  # no number
        (self.here / "9.txt").touch()
        for words in (["report", "--json"], ["flamegraph"], ["convert", "--to=pprof"], ["convert", "--to=json"], ["timeline", "--json"], ["suspects", "--json"],
                      ["list", "--csv"], ["upload", "--dry-run"]):
            with self.subTest(words):
                out, err = self.say(*words)
                self.assertEqual(err.splitlines()[0], f"memlog {words[0]}: reading {newer}")
                if words[0] != "upload":  # a body's boundary is random
                    self.assertEqual(out, self.say(*words, newer)[0])
        shown = harness.run_words([str(harness.MEMLOG), "components"], self.here, self.environment(), b"", harness.TIMEOUT)  # it may lack readings
        self.assertEqual(shown.stderr.decode().splitlines()[0], f"memlog components: reading {newer}")
        os.utime(self.here / older)
        self.assertIn(f"reading {older}\n", self.say("report")[1])
        (self.here / "0001.exit.pftrace").hardlink_to(self.here / newer)
        os.utime(self.here / newer)
        self.assertIn("reading ", self.say("report")[1])
        self.assertRegex(self.say("expand", "none", code=3)[1], "reading .*0001.exit.pftrace")

    def test_a_folder_is_its_newest_dump_by_number(self):
        dump = self.here / self.record("run")
        for name in ("0002.asked.pftrace", "0010.asked.pftrace", "0003.exit.pftrace"):
            shutil.copy(dump, dump.parent / name)
        os.utime(dump)
        for folder in ("run", "run/", str(self.here / "run")):
            self.assertIn("/0010.asked.pftrace\n", self.say("report", folder)[1])
        self.assertIn("reading run/0010.asked.pftrace", self.say("diff", "run/0001.exit.pftrace", "run")[1])
        self.assertIn("reading run/0010.asked.pftrace", self.say("symbolize", "-o", "named", "run")[1])
        self.assertEqual(self.say("report", "--json", "run/0010.asked.pftrace")[1], "")

    def test_where_there_is_none_that_is_said_and_nothing_else_is_read(self):
        (self.here / "empty").mkdir()
        for words in (["report"], ["convert", "--to=json"], ["components"], ["list"], ["expand", "malloc"]):
            out, err = self.say(*words, code=2)
            self.assertEqual(out, b"")
            self.assertIn("no dump was named, and none is here", err)
        self.assertIn("empty: there is no dump in this directory", self.say("report", "empty", code=1)[1])
        self.assertIn("which component?", self.say("expand", code=2)[1])
        self.assertIn("two dumps", self.say("diff", code=2)[1])

    def test_only_memlogs_own_names_are_dumps(self):
        folder = self.here / "others"
        folder.mkdir()
        for name in ("trace.pftrace", "1x.pftrace", "0002.pftrace.new", "-1.exit.pftrace"):
            (folder / name).write_bytes(b"no dump")
        self.assertIn("there is no dump in this directory", self.say("report", "others", code=1)[1])
        pathlib.Path(folder / "0001.exit.pftrace").write_bytes(b"no dump")
        self.assertIn("reading others/0001.exit.pftrace", self.say("report", "others", code=1)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
