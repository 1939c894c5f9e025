"""tests/runner.py: who is run a second time, who is not, and what the end of a log says of it."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import runner

# Fails so often, then passes; says on every run that it was there.
PROGRAM = """
import pathlib, sys, unittest
runs = pathlib.Path(sys.argv[1])
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
class Case(unittest.TestCase):
    def test_it(self):
        print(sys.argv[3])
        self.assertGreater(len(runs.read_text()), int(sys.argv[2]), "too early")
unittest.main(argv=sys.argv[:1])
"""


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memlog-test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, failures, says="", once=False):
        words = [sys.executable, "-c", PROGRAM, str(self.folder / name), str(failures), says]
        return runner.Test(name, words, 60, runner.count_unittest, once=once)

    def runs(self, name):
        return len((self.folder / name).read_text())

    def play(self, *tests):
        """(results by name, flaky ones, the closing lines)"""
        with contextlib.redirect_stdout(io.StringIO()) as said:
            results = runner.run_all(tests, 2)
            flaky = runner.give_second_chances(tests, results)
        self.said = said.getvalue()
        return results, flaky, runner.closing(results.values(), flaky)

    def test_who_passes_alone_counts_as_passed_and_is_named(self):
        results, _, lines = self.play(self.program("steady", 0), self.program("late", 1))
        self.assertEqual([result.failed for result in results.values()], [0, 0])
        self.assertEqual(self.runs("late"), 2)
        self.assertEqual(self.runs("steady"), 1)
        self.assertEqual(lines[-1], "2 passed, 0 failed")
        self.assertRegex("\n".join(lines), r"^FLAKY late: failed beside others \(load \d+\.\d\), passed alone\n(.*\n)*.*too early")
        self.assertIn("FAILED late", self.said)

    def test_who_fails_again_has_failed(self):
        _, flaky, lines = self.play(self.program("broken", 2), self.program("steady", 0))
        self.assertEqual(self.runs("broken"), 2)
        self.assertEqual(flaky, [])
        self.assertEqual(lines[-1], "1 passed, 1 failed")
        self.assertIn("too early", "\n".join(lines))
        self.assertNotIn("FLAKY", "\n".join(lines))

    def test_who_hangs_is_ended_with_its_children_in_groups_of_their_own(self):
        late = self.folder / "late"
        script = """
import os, pathlib, sys, time
if os.fork() == 0:
    os.setpgid(0, 0)
    time.sleep(20)
    pathlib.Path(sys.argv[1]).touch()
else:
    time.sleep(1000)
"""
        _, _, lines = self.play(runner.Test("hangs", [sys.executable, "-c", script, str(late)], 2, runner.count_unittest, once=True))
        self.assertFalse(late.exists())  # it would have kept the output open until then
        self.assertIn("ended after 2 s", "\n".join(lines))

    def test_more_than_three_are_no_accident(self):
        names = [f"late{number}" for number in range(runner.SECOND_CHANCES + 1)]
        _, _, lines = self.play(*(self.program(name, 1) for name in names))
        self.assertEqual([self.runs(name) for name in names], [1] * len(names))
        self.assertEqual(lines[-1], f"0 passed, {len(names)} failed")

    def test_what_guards_exactness_has_none(self):
        _, _, lines = self.play(
            self.program("by source", 1, once=True),
            self.program("by output", 1, "# runner: no second chance"),
            self.program("by sanitizer", 1, "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1"),
        )
        self.assertEqual([self.runs(name) for name in ("by source", "by output", "by sanitizer")], [1, 1, 1])
        self.assertEqual(lines[-1], "0 passed, 3 failed")

    def test_the_longest_begin_first_and_the_rest_keep_their_order(self):
        names = ["b/short_test", "thread/service/session/oracle_test", "a/short_test", runner.LONGEST_FIRST[0]]
        tests = [runner.Test(name, [], 1, runner.count_unittest) for name in names]
        self.assertEqual([test.name for test in runner.longest_first(tests)], [names[3], names[1], names[0], names[2]])

    def test_whoever_begins_first_is_there(self):
        known = {test.name for test in runner.unit_tests(runner.OUT, "", 1) + runner.script_tests()}
        self.assertEqual(set(runner.LONGEST_FIRST) - known, set())

    def test_who_is_idle_runs_beside_the_others_from_the_start(self):
        """In one job's place two would not meet."""
        come = "import os, sys, time\n" \
            "open(sys.argv[1] + sys.argv[2], 'w').close()\n" \
            "while not os.path.exists(sys.argv[1] + sys.argv[3]): time.sleep(0.01)\n" \
            "sys.exit(os.nice(0) != int(sys.argv[4]))"
        meeting = str(self.folder / "meeting")
        tests = [runner.Test(own, [sys.executable, "-c", come, meeting, own, other, nice], 20, runner.count_exit_code)
                 for own, other, nice in (("one", "idle", str(os.nice(0))), ("idle", "one", "19"))]
        tests[1].idle = True
        with contextlib.redirect_stdout(io.StringIO()):
            results = runner.run_all(tests, 1)
        self.assertEqual([result.name for result in results.values() if result.failed], [])
        self.assertEqual([test.name for test in runner.checks() if test.idle], ["check/lint"])

    def built_program(self, name, failure=None):
        """A program that waits for a build."""
        (test,) = runner.built([self.program(name, 0)], "out-late", "", [])

        def make():
            (self.folder / "made").touch()
            test.build.failed = failure is not None
            test.build.done.set()
            return failure

        test.build.run = make
        return test

    def test_who_waits_for_a_build_comes_behind_those_that_are_there(self):
        late = self.built_program("tests/e2e/self_checks_test.py")
        (self.folder / "tests/e2e").mkdir(parents=True)
        here = self.program("here", 0)
        ordered = runner.longest_first([late, here])
        self.assertEqual([test.name for test in ordered], ["here", late.name])
        with contextlib.redirect_stdout(io.StringIO()):
            results = runner.run_all(ordered, 1)
        self.assertEqual([result.name for result in results.values() if result.failed], [])
        self.assertTrue((self.folder / "made").exists())

    def test_a_build_that_fails_is_a_failure_and_the_others_run(self):
        failure = runner.Result("build/out-late", 0, 1, 0, "it does not build", 1.0)
        _, _, lines = self.play(self.built_program("late", failure), self.program("here", 0))
        self.assertFalse((self.folder / "late").exists())
        self.assertEqual(lines[-1], "1 passed, 1 failed")
        self.assertIn("it does not build", "\n".join(lines))

    def test_a_build_says_what_does_not_build(self):
        build = runner.Build("out", "", ["no_such_target"])
        with contextlib.redirect_stdout(io.StringIO()):
            result = build.run()
        self.assertEqual((result.name, result.failed, build.is_there()), ("build/out", 1, False))
        self.assertIn("no_such_target", result.output)

    def test_who_is_to_run_alone_begins_when_all_others_are_done(self):
        tests = [self.program(name, 0) for name in ("alone", "one", "other")]
        tests[0].alone = True
        results, _, _ = self.play(*tests)
        self.assertEqual(list(results)[-1], "alone")
        alone = ["tests/e2e/browser_figures_test.py", "tests/e2e/components_test.py", "tests/e2e/process_burst_test.py"]
        self.assertEqual([test.name for test in runner.script_tests() if test.alone], alone)

    def test_the_mark_is_found_in_the_sources_of_programs_and_scripts(self):
        units = {test.name: test.once for test in runner.unit_tests(runner.OUT, "", 1)}
        for name in ("service/session/oracle_test", "service/session/race_oracle_test", "fuzz/service_session_fuzz"):
            self.assertTrue(units[name], name)
        self.assertFalse(units["host/policy/options_test"])
        scripts = {test.name: test.once for test in runner.script_tests()}
        self.assertTrue(scripts["tests/e2e/oracle_test.py"])
        self.assertFalse(scripts["tests/e2e/control_test.py"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
