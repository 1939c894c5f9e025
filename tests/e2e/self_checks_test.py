"""The target cannot tell: programs' own self-checks bare and under memlog, exact and sampled, and what a program sees of itself.

The short form of tests/e2e/self_checks.py, which has many more. The packages come with tools/dev/setup test."""
import unittest

import harness
import self_checks

STACK_MAX_BYTES = 4096  # of the hook, below what the program's own call takes
GROWTH_MAX_KIB = 4096  # its half a megabyte: the library, its tables' first pages, staging


class Suites(unittest.TestCase):
    def assert_same(self, suite):
        said = []
        checks = [check for check in self_checks.short() if check.suite == suite]
        self.assertGreater(len(checks), 7, f"the self-checks of {suite} are not installed (tools/dev/setup test)")
        same, different, unsteady = self_checks.compare_all(checks, said.append)
        self.assertEqual([str(check) for check, _ in different], [], "\n".join(said))
        self.assertGreater(same, 0.8 * len(checks), f"prove nothing: {', '.join(map(str, unsteady))}")

    def test_glib(self):
        self.assert_same("glib")

    def test_systemd(self):
        self.assert_same("systemd")

    def test_python(self):
        self.assert_same("python")

    def test_stress_ng(self):
        self.assert_same("stress")


class Leftovers(harness.Case):
    def test_what_a_check_has_closed_goes_with_its_folder(self):
        work = self.folder / "work"
        for name, mode in (("open", 0o755), ("closed", 0), ("read-only", 0o500)):
            (work / name / "below").mkdir(parents=True)
            (work / name).chmod(mode)
        (work / "link").symlink_to(self.truth_folder)
        self.truth_folder.chmod(0o500)
        self_checks.remove(work)
        self.assertEqual((work.exists(), self.truth_folder.stat().st_mode & 0o777), (False, 0o500))


class Seen(harness.Case):
    """tests/oracle/seen.c: signals, masks, limits, descriptors, errno, environment, children; twice, as it execs itself."""

    def see(self, *before):
        words = [*map(str, before), str(harness.PROGRAMS / "oracle" / "seen")]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 4, answer.stderr)
        lines = (answer.stdout + answer.stderr).decode().split("\n")
        return [line for line in lines if not line.startswith("KiB")], [int(line[4:]) for line in lines if line.startswith("KiB")]

    def assert_same(self, *options):
        bare, bare_kib = self.see()
        self.assertGreater(len(bare), 150)
        lines, kib = self.see(harness.MEMLOG, "run", "-q", "--no-page", "-o", self.folder / "dumps1", *options, "--")
        self.assertEqual(lines, bare)
        for own, others in zip(kib, bare_kib, strict=True):
            self.assertLess(own - others, GROWTH_MAX_KIB)
        (dump,) = (self.folder / "dumps1").glob("*.exit.pftrace")
        self.assertGreaterEqual(len(self.report(dump)["processes"]), 2)  # its images; sampled, a child may have nothing to say

    def test_exact(self):
        self.assert_same()

    def test_sampled(self):
        self.assert_same("--memlog-sampling-rate=4096")

    def test_not_recorded(self):
        bare, _ = self.see()
        lines, _ = self.see(harness.MEMLOG, "run", "-q", "--no-page", "--memlog=manual", "-o", self.folder / "dumps1", "--")
        self.assertEqual(lines, bare)


class StackUse(harness.Case):
    """tests/oracle/stack_use.c: how deep calls of the allocator go on a painted stack."""

    def test_the_hook_needs_a_page_of_stack(self):
        program = harness.PROGRAMS / "oracle" / "stack_use"
        bare = harness.run_words([str(program)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(bare.returncode, 0, bare.stderr)
        for options in ((), ("--memlog-sampling-rate=64",), ("--memlog-stack-mode=native-with-thread-names",)):
            run = self.memlog(program, options=("-q", "--no-page", *options))
            self.assertEqual(run.code, 0, run.err)
            self.assertGreater(self.exit_report(run)["tree"]["total_blocks"], 0)
            self.assertLessEqual(int(run.out) - int(bare.stdout), STACK_MAX_BYTES, options)


class Sealed(harness.Case):
    """tests/oracle/sealed.c walls itself in by seccomp, and a filter may kill for what only memlog would do."""

    BLOCKS = 50000

    def run_sealed(self, *words):
        """Its own end is the same; returns the report's processes, the program first."""
        program = harness.PROGRAMS / "oracle" / "sealed"
        bare = harness.run_words([str(program), *words], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(bare.returncode, 5)
        run = self.memlog(program, *words)
        self.assertEqual((run.code, run.out), (5, bare.stdout), run.err)
        return self.exit_report(run)["processes"]

    def blocks(self, entry):
        return sum(stack["total_blocks"] for stack in entry["stacks"] if any(frame["function"] == "work" for frame in stack["frames"]))

    def test_what_forbids_our_calls_ends_the_recording_and_is_told(self):
        for how in ("strict", "narrow", "trap", "narrow-call", "trap-call", "dispatch", "dispatch-call"):
            (entry,) = self.run_sealed(how)
            self.assertEqual((entry["state"], entry["exit_code"]), ("exited", 5), how)
            self.assertFalse(entry["complete"], how)
            self.assertIn("its own sandbox forbids", entry["trouble"], how)
            self.assertEqual(entry["accounting"]["dropped"]["no_pipe"], 1, how)
            self.assertEqual(self.blocks(entry), self.BLOCKS, how)

    def test_what_answers_our_calls_with_an_error_is_told(self):
        (entry,) = self.run_sealed("errno")
        self.assertFalse(entry["complete"])
        self.assertIn("its own sandbox forbids", entry["trouble"])
        self.assertGreaterEqual(self.blocks(entry), self.BLOCKS)

    def test_who_allocates_nothing_behind_its_walls_has_lost_nothing(self):
        for how in ("strict", "narrow", "trap", "narrow-call", "trap-call", "dispatch", "dispatch-call"):
            (entry,) = self.run_sealed(how, "0")
            self.assertTrue(entry["complete"], (how, entry["trouble"]))
            self.assertEqual(entry["lost_events"], 0, how)
            self.assertEqual(self.blocks(entry), self.BLOCKS, how)

    def test_a_forked_child_that_walls_itself_in(self):
        parent, child = self.run_sealed("child")
        self.assertTrue(parent["complete"], parent["trouble"])
        self.assertFalse(child["complete"])
        self.assertEqual((self.blocks(parent), self.blocks(child)), (self.BLOCKS, self.BLOCKS))

    def test_a_forked_child_that_walls_itself_in_before_it_allocates(self):
        """Nobody hears of it; that it is missing is known where its parent counts."""
        (parent,) = self.run_sealed("fresh")
        self.assertEqual((parent["complete"], self.blocks(parent)), (False, self.BLOCKS))
        self.assertIn("a sandbox is in the way): forked children of it", parent["trouble"])
        (parent,) = self.run_sealed("fresh", "0")
        self.assertEqual((parent["complete"], parent["trouble"]), (True, ""))

    def test_a_browsers_sandbox_does_not_end_the_recording(self):
        for how in ("pending", "consume"):
            (entry,) = self.run_sealed(how)
            self.assertTrue(entry["complete"], (how, entry["trouble"]))
            self.assertEqual(self.blocks(entry), 2 * self.BLOCKS, how)

    def test_without_a_way_to_take_a_sigpipe_back_it_must_be_ignored(self):
        (entry,) = self.run_sealed("caught")
        self.assertIn("its own sandbox forbids", entry["trouble"])
        self.assertEqual((entry["complete"], self.blocks(entry)), (False, self.BLOCKS))
        (entry,) = self.run_sealed("caught-late")
        self.assertFalse(entry["complete"])
        self.assertGreater(self.blocks(entry), 1.9 * self.BLOCKS)  # the chunk at hand is lost, and what comes behind

    def test_what_lets_our_calls_through_changes_nothing(self):
        for how in ("wide", "wide-call"):
            (entry,) = self.run_sealed(how)
            self.assertTrue(entry["complete"], entry["trouble"])
            self.assertEqual(self.blocks(entry), 2 * self.BLOCKS, how)


if __name__ == "__main__":
    unittest.main(verbosity=2)
