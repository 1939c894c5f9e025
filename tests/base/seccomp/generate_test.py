"""base/seccomp/generate.py: what it makes of a policy, and what it says of one that is wrong."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
GENERATE = ROOT / "base/seccomp/generate.py"


class Generate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def generate(self, *texts):
        """Run it over files with these texts; returns (exit code, stderr, output)."""
        sources = []
        for i, text in enumerate(texts):
            source = self.folder / f"{i}.policy"
            source.write_text(text)
            sources.append(str(source))
        target = self.folder / "out.c"
        run = subprocess.run(
            [sys.executable, str(GENERATE), "a/policy.h:ml_a_policy", *sources, str(target)], capture_output=True, text=True, check=False
        )
        return run.returncode, run.stderr, target.read_text() if target.exists() else ""

    def assert_refused(self, text, line, expected):
        code, complaint, output = self.generate(text)
        self.assertEqual(code, 1)
        self.assertIn(f"0.policy:{line}: error: expected {expected}", complaint)
        self.assertEqual(output, "")

    def test_a_line_becomes_a_row_with_its_number(self):
        code, complaint, output = self.generate("# head\n\nread | pipes | life\n")
        self.assertEqual((code, complaint), (0, ""))
        self.assertIn('{"read", SCMP_SYS(read), 3, 0, {{0, 0, 0}}, "life"}, /* pipes */', output)

    def test_conditions_keep_mask_and_value(self):
        _, _, output = self.generate("mmap arg2 & PROT_EXEC == 0 and arg3 == MAP_ANONYMOUS | a | b\n")
        self.assertIn("2, {{2, PROT_EXEC, 0}, {3, UINT32_MAX, MAP_ANONYMOUS}}", output)

    def test_values_of_run_time_get_their_names(self):
        _, _, output = self.generate("tgkill arg0 == SELF | a | b\nrecvmsg arg0 == HOST | a | b\n")
        self.assertIn("ML_SECCOMP_SELF", output)
        self.assertIn("ML_SERVICE_HOST_FD", output)

    def test_lines_of_a_further_file_are_numbered_apart(self):
        _, _, output = self.generate("read | a | b\n", "\nwrite | a | b\n")
        self.assertIn("SCMP_SYS(write), 10002,", output)

    def test_a_missing_column_is_named_by_its_line(self):
        self.assert_refused("# head\nread | pipes\n", 2, "`syscall [conditions] | reason | exercise`")

    def test_an_empty_reason_is_refused(self):
        self.assert_refused("read |  | life\n", 1, "`syscall [conditions] | reason | exercise`")

    def test_a_condition_of_another_form_is_refused(self):
        self.assert_refused("read arg6 == 1 | a | b\n", 1, "`argN == VALUE` or `argN & MASK == VALUE`, found `arg6 == 1`")

    def test_more_conditions_than_there_is_room_for_are_refused(self):
        self.assert_refused("read arg0 == 1 and arg1 == 1 and arg2 == 1 | a | b\n", 1, "at most 2 conditions")

    def test_the_shipped_policies_are_right(self):
        policies = [path.read_text() for path in [path for depth in ("*/*", "*/*/*") for path in sorted(ROOT.glob(depth + "/policy/*.policy"))]]
        code, complaint, _ = self.generate(*policies)
        self.assertEqual((code, complaint), (0, ""))


if __name__ == "__main__":
    unittest.main()
