"""The program memlog-analyzer as a person and a script meet it: words, exit codes, what goes where."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", ROOT / "out")).resolve()


class Analyzer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="memlog-test.")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.dump = cls.folder / "0001.exit.pftrace"
        subprocess.run([OUT / "write_synthetic", cls.dump, "2", "60", "90"], check=True)

    def analyze(self, *words, env=None, stdin=None, cwd=None):
        return subprocess.run(
            [OUT / "memlog-analyzer", *map(str, words)], cwd=cwd or self.folder, stdin=stdin or subprocess.DEVNULL,
            capture_output=True, check=False, env={**os.environ, "COLUMNS": "100", "MEMLOG_SYMBOL_CACHE": "off", **(env or {})},
        )

    def refuse(self, *words, code=2, saying, cwd=None):
        done = self.analyze(*words, cwd=cwd)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, b"")
        self.assertIn(saying, done.stderr.decode())

    def test_every_command_helps_with_an_example_on_stdout(self):
        for command in ("report", "convert", "diff"):
            done = self.analyze(command, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(b"Example:\n  memlog " + command.encode(), done.stdout)
        self.assertIn(b"convert", self.analyze("--help").stdout)

    def test_words_that_are_not_understood_are_named_with_the_nearest(self):
        self.refuse("repport", self.dump, saying="unknown command 'repport'; did you mean 'report'?")
        self.refuse("report", "--jsn", self.dump, saying="unknown option '--jsn'; did you mean '--json'?")
        self.refuse("report", "--json=1", self.dump, saying="--json takes no value")
        self.refuse("report", "--limit=0", self.dump, saying="--limit")
        self.refuse("report", "--limit", saying="--limit needs a value")
        nothing = self.folder / "nothing"
        nothing.mkdir(exist_ok=True)
        self.refuse("report", saying="no dump was named", cwd=nothing)
        self.refuse("report", self.dump, self.dump, saying="is one word too many: memlog report [OPTIONS] [DUMP]")
        self.refuse("convert", self.dump, saying="--to")
        self.refuse("convert", "--to=pprf", self.dump, saying="did you mean 'pprof'?")
        self.refuse("convert", "--to=collapsed", "--metric=peek", self.dump, saying="did you mean 'peak'?")
        self.refuse("convert", "--to=heap", "--metric=peak", self.dump, saying="--metric")
        self.refuse("convert", "--to=pprof", "--pid=x", self.dump, saying="--pid")
        self.refuse("convert", "--to=collapsed", "--pid=77", self.dump, code=3, saying="no process 77")

    def test_a_program_is_told_by_the_exit_code_and_in_bare_words(self):
        for words, code, said in (
                (("convert", "--to=collapsed", "--pid=77", self.dump), 3, "no process 77 in it; memlog report lists them\n"),
                (("page-data", "--role=gpu", self.dump), 3, "no process of role gpu in it\n"),
                (("timeline", "--json", "--from=2099-01-01T00:00:00Z", self.dump), 3,
                 "nothing is known of that time; without --from and --to you see from when to when\n"),
                (("report", "--dump=9", self.dump), 1, "there is no dump 9 in it, but 1\n"),
                (("report", self.folder / "none"), 1, "No such file or directory; dumps are the *.pftrace files in the output folder of memlog run\n")):
            with self.subTest(words=words):
                bare, full = self.analyze("--bare", *words), self.analyze(*words)
                self.assertEqual((bare.returncode, bare.stdout, bare.stderr.decode()), (code, b"", said))
                self.assertEqual((full.returncode, full.stderr.decode()), (code, f"memlog {words[0]}: {words[-1]}: {said}"))

    def test_the_allocator_of_an_executable_is_told_family_by_family(self):
        oracle = OUT / "tests" / "oracle"
        told = self.analyze("entries", "--allocator=pool=pool_", oracle / "inside_refused")
        self.assertEqual((told.returncode, told.stderr), (0, b""))
        self.assertIn(b"  pool: not hooked: pool_free: an instruction at its entry has no longer form (loop)\n", told.stdout)
        self.assertRegex(self.analyze("entries", oracle / "inside_own").stdout, rb"  malloc: hooked: \d functions \(.*(malloc|free).*\)\n")
        self.assertIn(b"  no allocator inside\n", self.analyze("entries", "/bin/true").stdout)
        family = json.loads(self.analyze("entries", "--json", "--allocator=pool=pool_", oracle / "inside_refused").stdout)["families"][0]
        self.assertEqual((family["name"], family["hooked"], family["missed"], family["functions"]), ("pool", False, True, []))
        self.assertEqual([one["function"] for one in family["not_hooked"]], ["pool_malloc", "pool_free"])
        for words, code in (((), 0), (("--allocator=pool=pool_",), 3)):
            said = self.analyze("entries", "--sentence", *words, oracle / "inside_refused")
            self.assertEqual((said.returncode, said.stderr, said.stdout.count(b"\n")), (code, b"", 1))

    def test_an_executable_that_is_none_is_refused(self):
        self.refuse("entries", saying="no program was named")
        self.refuse("entries", "--allocator=pool", "/bin/true", saying="--allocator=pool: it is not NAME=PREFIX")
        self.refuse("entries", self.dump, code=1, saying="it is no x86-64 program")
        self.refuse("entries", "/dev/null", code=1, saying="/dev/null: ")
        self.refuse("entries", self.folder, code=1, saying=f"{self.folder}: ")
        cut = self.folder / "cut"
        for count_bytes in (0, 64, 1000, 20000):
            cut.write_bytes((OUT / "tests" / "oracle" / "inside_own").read_bytes()[:count_bytes])
            done = self.analyze("entries", cut)
            self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_a_summary_is_short(self):
        done = self.analyze("report", "--summary", self.dump)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertLess(len(done.stdout.splitlines()), 20)
        self.assertIn(b"peak", done.stdout)
        self.refuse("report", "--summary", "--json", self.dump, saying="--summary and --json are different things")

    def test_a_diff_says_what_grew_and_what_shrank(self):
        other = self.folder / "0002.exit.pftrace"
        subprocess.run([OUT / "write_synthetic", other, "3", "80", "120"], check=True)
        done = self.analyze("diff", "--limit=1", self.dump, other)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"Grew", done.stdout)
        done = self.analyze("diff", "--json", self.dump, other)
        diff = json.loads(done.stdout)
        reports = [json.loads(self.analyze("report", "--json", dump).stdout) for dump in (self.dump, other)]
        for side, report in zip(("from", "to"), reports):
            for figure in ("live_bytes", "live_blocks", "peak_bytes", "total_bytes", "total_blocks"):
                self.assertEqual(diff[side]["tree"][figure], report["tree"][figure])
                # Nothing runs any more: the stacks show what was left.
                shown = report["tree"][figure] + report["tree"].get(figure.replace("live", "left"), 0) * ("live" in figure)
                self.assertEqual(sum(stack[side][figure] for stack in diff["stacks"]), shown)
        grown = [
            {figure: stack["to"][figure] - stack["from"][figure] for figure in ("live_bytes", "live_blocks")}
            for stack in diff["stacks"] if stack["to"]["live_bytes"] > stack["from"]["live_bytes"]
        ]
        leaks = json.loads(self.analyze("diff", "--leaks", self.dump, other).stdout)
        self.assertTrue(leaks)
        self.assertEqual([(leak["size"], leak["count"]) for leak in leaks], [(one["live_bytes"], one["live_blocks"]) for one in grown])
        self.assertTrue(any(leak["stackframes"] for leak in leaks))
        self.assertTrue(all(set(leak["count_by_type"].values()) == {leak["count"]} for leak in leaks))
        self.assertIn("Processes", self.analyze("diff", self.dump, other).stdout.decode())
        # Of one dump: catapult's diff_heap_profiler takes it as what grew from nothing.
        whole = json.loads(self.analyze("diff", "--leaks", other).stdout)
        held = [stack for stack in diff["stacks"] if stack["to"]["live_bytes"] > 0]
        self.assertEqual(sorted((leak["size"], leak["count"]) for leak in whole),
                         sorted((stack["to"]["live_bytes"], stack["to"]["live_blocks"]) for stack in held))
        self.assertEqual([leak["size"] for leak in whole], sorted((leak["size"] for leak in whole), reverse=True))
        self.assertEqual(json.loads(self.analyze("diff", "--leaks", "--limit=1", other).stdout), whole[:1])
        self.refuse("diff", "--html", self.dump, saying="two dumps are compared: FROM and TO; one is for --leaks alone")
        self.refuse("diff", "--leaks", saying="two dumps are compared")
        self.refuse("diff", "--leaks", "missing", code=1, saying="missing: No such file")
        self.refuse("diff", "--leaks", "--pprof", self.dump, other, saying="one of them")
        self.refuse("diff", self.dump, saying="two dumps are compared")
        self.refuse("diff", self.dump, "missing", code=1, saying="missing: No such file")
        self.refuse("diff", "--metric=x", self.dump, other, saying="--metric")

    def test_files_that_cannot_be_read_are_named(self):
        text = self.folder / "text"
        text.write_text("hello")
        empty = self.folder / "empty"
        empty.write_bytes(b"")
        self.refuse("report", "missing", code=1, saying="missing: No such file")
        self.refuse("report", text, code=1, saying="no dump of memlog")
        self.refuse("report", empty, code=1, saying="empty")
        nothing = self.folder / "nothing"
        nothing.mkdir(exist_ok=True)
        self.refuse("report", nothing, code=1, saying="nothing: there is no dump in this directory")

    def test_a_cut_file_is_shown_and_said_to_be_cut(self):
        cut = self.folder / "cut.pftrace"
        data = self.dump.read_bytes()
        cut.write_bytes(data[: len(data) * 2 // 3])
        done = self.analyze("report", "--json", cut)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"cut off", done.stderr)
        report = json.loads(done.stdout)
        self.assertFalse(report["dump"]["complete"])
        self.assertTrue(report["dump"]["truncated"])
        done = self.analyze("report", cut)
        self.assertIn(b"NOT COMPLETE", done.stdout)

    def test_a_dump_comes_by_stdin_too(self):
        with open(self.dump, "rb") as file:
            done = self.analyze("report", "--json", "-", stdin=file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["processes"]), 2)

    def test_colour_is_for_terminals_unless_asked_for(self):
        self.assertNotIn(b"\x1b", self.analyze("report", self.dump).stdout)
        self.assertIn(b"\x1b", self.analyze("report", self.dump, env={"CLICOLOR_FORCE": "1"}).stdout)
        both = {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}
        self.assertNotIn(b"\x1b", self.analyze("report", self.dump, env=both).stdout)

    def test_json_forms_are_the_same(self):
        report = self.analyze("report", "--json", self.dump)
        converted = self.analyze("convert", "--to=json", self.dump)
        self.assertEqual(report.stdout, converted.stdout)

    def test_what_was_there_stays_when_the_new_file_fails(self):
        target = self.folder / "kept"
        target.write_text("precious")
        done = self.analyze("convert", "--to=collapsed", "-o", target, "missing")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(target.read_text(), "precious")
        done = self.analyze("convert", "--to=collapsed", "-o", self.folder / "no" / "folder", self.dump)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No such file", done.stderr)
        done = self.analyze("convert", "--to=collapsed", "-o", target, self.dump)
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertNotEqual(target.read_text(), "precious")
        self.assertEqual(list(self.folder.glob("*.part")), [])

    def test_devices_and_pipes_are_written_to_not_replaced(self):
        for target in ("/dev/null", "/dev/stdout", "-"):
            done = self.analyze("convert", "--to=collapsed", "-o", target, self.dump)
            self.assertEqual((done.returncode, done.stderr), (0, b""), target)
            self.assertEqual(bool(done.stdout), target != "/dev/null")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        done = self.analyze("convert", "--to=collapsed", "-o", self.folder, self.dump)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"Is a directory", done.stderr)

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [OUT / "memlog-analyzer", "report", self.dump], stdout=full, stderr=subprocess.PIPE, check=False
            )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"stdout", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
