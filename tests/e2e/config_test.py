"""~/.config/memlog/config: defaults of each command's options, checked as the options are, and memlog config, which says what is in force."""
import os
import unittest

import harness


class Config(harness.Case):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "config" / "memlog" / "config"
        self.file.parent.mkdir(parents=True)

    def write(self, *lines, mode=0o600):
        self.file.write_text("\n".join(lines) + "\n")
        self.file.chmod(mode)

    def say(self, *words, code=0, **changes):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(**changes), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return answer.stdout.decode(), answer.stderr.decode()

    def test_options_of_host_and_analyzer_begin_with_the_files(self):
        self.write("# mine", "[run attach]", "no-page", "quiet", "output = dumps", "[report diff]", "json", "limit = 1")
        self.assertEqual(self.say("run", "--", "/bin/true"), ("", ""))
        dump = next((self.folder / "dumps").glob("*.exit.pftrace"))
        self.assertTrue(self.say("report", dump)[0].startswith('{"memlog":1,'))
        self.assertNotIn("{", self.say("report", "--csv", dump)[0])  # it excludes --json, and wins
        self.assertNotIn('{"memlog"', self.say("--no-config", "report", dump)[0])
        self.assertEqual(self.say("run", "-o", "others", "--", "/bin/true"), ("", ""))
        self.assertTrue((self.folder / "others").exists())

    def test_a_flag_of_the_file_is_taken_back_by_a_word(self):
        self.write("[run]", "no-page", "quiet", "output = dumps", "[report]", "json", "plumbing", "[timeline]", "no-stacks")
        self.say("run", "--", "/bin/true")
        dump = next((self.folder / "dumps").glob("*.exit.pftrace"))
        self.assertNotIn('{"memlog"', self.say("report", "--no-json", dump)[0])
        self.assertTrue(self.say("report", "--no-csv", dump)[0].startswith('{"memlog"'))
        err = self.say("run", "--no-quiet", "--page", "-o", "others", "--", "/bin/true")[1]
        self.assertIn("http://127.0.0.1:", err)
        rows = dict((line.split()[0], line.split()[1:]) for line in self.say("config", "report", "--no-json")[0].splitlines())
        self.assertEqual(rows["--json"], ["off", "command", "line"])
        self.assertEqual(rows["--plumbing"], ["on", f"{self.file}:7"])
        rows = [line.split() for line in self.say("config", "timeline", "--stacks")[0].splitlines()]
        self.assertIn(["--no-stacks", "off", "command", "line"], rows)
        self.write("[report]", "json", "no-json", "[timeline]", "no-limit")
        self.assertNotIn('{"memlog"', self.say("report", dump)[0])
        self.assertIn(f"{self.file}:5: unknown option '--no-limit'", self.say("timeline", dump, code=2)[1])

    def test_a_wrong_line_is_named_and_ends_the_commands_that_it_is_for(self):
        self.write("[run]", "memlog-sampling-rate = much", "[report]", "limt = 1")
        err = self.say("run", "--", "/bin/touch", "ran", code=2)[1]
        self.assertIn(f"{self.file}:2: --memlog-sampling-rate=much: ", err)
        self.assertFalse((self.folder / "ran").exists())
        self.assertIn(f"{self.file}:4: unknown option '--limt'; did you mean '--limit'?", self.say("report", "none", code=2)[1])
        self.assertIn("none: ", self.say("timeline", "none", code=1)[1])  # nothing is wrong with its options
        self.write("[rn]")
        self.assertIn(f"{self.file}:1: no such command", self.say("timeline", "none", code=2)[1])
        self.assertIn(f"{self.file}:1: no such command", self.say("config", code=2)[1])
        self.say("--version")
        self.say("help")
        self.say("--no-config", "run", "-q", "--no-page", "-o", "run.of", "--", "/bin/true")

    def test_a_file_that_others_may_write_is_not_read_and_that_is_said(self):
        self.write("[timeline]", "limt = 1", mode=0o622)
        err = self.say("timeline", "none", code=1)[1]
        self.assertIn(f"memlog: {self.file} is not read: others may write it", err)
        self.assertIn("not read, others may write it", self.say("config")[0])

    def test_config_says_what_is_in_force_and_from_where(self):
        self.write("[report]", "limit = 3", "[run]", "quiet")
        out = self.say("config", NO_COLOR="1")[0].splitlines()
        self.assertEqual(out[:3], [f"file  {self.file}", f"  [report] --limit=3  {self.file}:2", f"  [run] --quiet  {self.file}:4"])
        self.assertIn("  NO_COLOR=1", out)
        rows = dict((line.split()[0], line.split()[1:]) for line in self.say("config", "report", "--metric=peak", "--by", "function")[0].splitlines())
        self.assertEqual(rows["--limit"], ["3", f"{self.file}:2"])
        self.assertEqual(rows["--metric"], ["peak", "command", "line"])
        self.assertEqual(rows["--by"], ["function", "command", "line"])
        self.assertEqual(rows["--json"], ["default"])
        rows = dict((line.split()[0], line.split()[1:]) for line in self.say("config", "run", "-o", "x", "--", "prog", "--no-page")[0].splitlines())
        self.assertEqual(rows["--quiet"], ["on", f"{self.file}:4"])
        self.assertEqual(rows["--output"], ["x", "command", "line"])
        self.assertEqual(rows["--no-page"], ["default"])
        self.assertIn("did you mean '--limit'?", self.say("config", "report", "--limt=1", code=2)[1])
        self.assertIn("is no command", self.say("config", "rn", code=2)[1])
        self.file.unlink()
        self.assertIn(": not read, there is none", self.say("config")[0])
        self.assertIn("--no-config was said", self.say("--no-config", "config")[0])

    @unittest.skipUnless(os.geteuid() == 0, "only root may give a file away")
    def test_a_file_of_another_user_is_not_read(self):
        self.write("[timeline]", "limt = 1")
        os.chown(self.file, 65534, 65534)
        self.assertIn("is not read: it belongs to another user", self.say("timeline", "none", code=1)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
