"""Dumps that memlog takes unasked: one for each threshold that is crossed, of the right process, with the guilty stack, at once;
none below it. (Those for memories are triggers_memory_test.py's.)"""
import json
import math
import shlex
import subprocess
import time
import unittest

import harness
import triggering
from triggering import GROWER, MIB


class Triggers(triggering.Case):
    def test_a_footprint_over_its_threshold_dumps_once_and_again_after_the_step(self):
        process = self.grow(
            f"guilty={4 * MIB}", "wait=@go1", f"guilty={8 * MIB}", "wait=@go2", f"guilty={3 * MIB}", "wait=@go3", f"guilty={5 * MIB}",
            "wait=@end", options=(self.rules(footprint={"browser": "10M", "again": "7M"}),),
        )
        self.wait_for("a look at the program", lambda: self.told(process, "no dump", "footprint", "the nearest is main grower"))
        self.below(process, "footprint")
        self.go("go1")
        report, trigger = self.check(self.wait_triggered(process, 1), "footprint")
        (member,) = report["processes"]
        self.assertEqual(trigger["process_id"], member["id"])
        self.assertGreater(member["footprint_bytes"], 10 * MIB)
        self.assertGreaterEqual(trigger["stack_bytes"], 12 * MIB)
        self.below(process, "footprint", dumps=1)
        self.go("go2")  # 3 of the 7 MiB that it has to rise by
        self.below(process, "footprint", more=3, dumps=1)
        self.go("go3")
        _, trigger = self.check(self.wait_triggered(process, 2), "footprint")
        self.assertRegex(trigger["reason"], ", again$")
        self.below(process, "footprint", dumps=2)
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 2)
        self.assertEqual((len(self.told(process, "dump", "footprint")), len(self.told(process, "written", "footprint"))), (2, 2))

    def test_each_role_of_a_tree_has_its_own_threshold(self):
        """Three programs with 16 MiB each, of roles that may use 12, 24 and 48 MiB."""
        wants = {"utility": (12, 0), "gpu": (24, 16), "renderer": (48, 48)}  # the threshold, and what is grown by then
        children = [
            shlex.join((str(GROWER), f"--type={role}", *self.in_folder((f"guilty={16 * MIB}", f"wait=@{role}", f"guilty={more * MIB}", "wait=@end"))))
            for role, (_, more) in wants.items()]
        footprint = {"browser": "off", "other": "off", "again": "off", **{role: f"{size}M" for role, (size, _) in wants.items()}}
        process = self.memlog_start(
            "/bin/sh", "-c", " & ".join([*children, "wait"]), options=("-q", "--no-page", self.rules(footprint=footprint)))
        for count, role in enumerate(wants):
            self.go(role)
            report, trigger = self.check(self.wait_triggered(process, count + 1), "footprint")
            self.assertEqual(self.guilty_of(report)["role"], role)
            self.assertIn(f"{role} grower", trigger["reason"])
            self.assertGreater(self.guilty_of(report)["footprint_bytes"], wants[role][0] * MIB)
            self.looks(process)
            self.assertEqual(len(self.triggered(process)), count + 1)
        self.end(process)
        self.assertEqual(len(self.triggered(process)), len(wants))

    def test_the_short_flags_do_the_same_for_the_right_process_of_a_tree(self):
        process = self.grow(
            "fork", "wait=@there", f"guilty={9 * MIB}", "wait=@end", "end",
            "fork", f"innocent={2 * MIB}", "wait=@go", "done=@there", "wait=@end", "end", "wait=@end",
            options=("--threshold=other=8M", "--trigger-interval=1"),
        )
        self.below(process, "footprint", "with")
        self.go("go")
        report, _ = self.check(self.wait_triggered(process, 1), "footprint")
        self.assertGreaterEqual(self.guilty_of(report)["live_bytes"], 9 * MIB)
        self.assertEqual(len(report["processes"]), 3)
        self.looks(process)
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 1)

    def test_growth_names_who_grew_and_not_who_holds_most(self):
        process = self.grow(
            "fork", f"innocent={3 * MIB}", "wait=@end", "end",
            f"innocent={30 * MIB}", "done=@there", "wait=@go1", f"guilty={4 * MIB}", "wait=@go2", f"guilty={2 * MIB}", "wait=@end",
            options=(self.rules(growth={"bytes": "5M", "seconds": 600}),),
        )
        self.there()
        self.below(process, "growth")
        self.go("go1")  # 4 of the 5 MiB
        self.below(process, "growth", more=3)
        self.go("go2")
        report, trigger = self.check(self.wait_triggered(process, 1), "growth")
        self.assertEqual(trigger["stack_bytes"], 6 * MIB)
        self.assertEqual(self.guilty_of(report)["live_bytes"], 36 * MIB)
        self.below(process, "growth", dumps=1)
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 1)

    def test_live_heap_a_stacks_budget_and_a_new_peak(self):
        cases = {
            "live": {"live": {"browser": "5M", "again": "off"}},
            "stack": {"stack": {"bytes": "5M"}},
            "peak": {"peak": {"step": "5M"}},
        }
        for kind, rules in cases.items():
            with self.subTest(kind):
                go, again, there, end = (f"{name}-{kind}" for name in ("go", "again", "there", "end"))
                process = self.grow(
                    "fork", f"innocent={MIB // 2}", f"wait=@{end}", "end", f"innocent={4 * MIB}", f"wait=@{go}", f"guilty={6 * MIB}", f"wait=@{again}", "drop",
                    f"guilty={6 * MIB}", f"done=@{there}", f"wait=@{end}", options=(self.rules(**rules),),
                )
                self.wait_for("the child", lambda: len(self.rows(state="running")) == 2)
                self.below(process, kind)
                self.go(go)
                report, _ = self.check(self.wait_triggered(process, 1), kind)
                self.assertEqual(self.guilty_of(report)["live_bytes"], 10 * MIB)
                self.assertEqual(len(report["processes"]), 2)
                self.go(again)  # as much once more is nothing new
                self.there(there)
                self.below(process, kind, dumps=1)
                self.end(process, end)
                self.assertEqual(len(self.triggered(process)), 1)

    def test_an_interval_comes_when_it_is_due_and_not_before(self):
        every, start = 3, time.time()
        process = self.grow("wait=@end", options=(self.rules(every_seconds=every),))
        for count in (1, 2, 3):
            self.check(self.wait_triggered(process, count), "every", None)
        self.end(process)
        taken = self.told(process, "dump", "every")
        for count, line in enumerate(taken, 1):
            self.assertGreaterEqual(triggering.seconds_of(line), start + every * count - 0.01, taken)
        self.assertTrue(self.told(process, "no dump", "every", "the next is due in "))

    def test_a_certain_control_sample_and_one_that_is_never_drawn(self):
        process = self.grow("wait=@end", options=(self.rules(control={"one_in": 1}),))
        self.check(self.wait_triggered(process, 1), "control", None)
        self.end(process)
        (self.folder / "end").unlink()
        process = self.grow("wait=@end", options=(self.rules(control={"one_in": 4_000_000_000}),))
        self.below(process, "control", "not drawn", more=3)
        self.end(process)
        self.assertEqual(self.triggered(process), [])

    def test_a_control_sample_comes_at_half_of_the_looks(self):
        """Of eight runs' first looks, twelve each: fewer or more than a fair coin gives but once in 10^9 times. (Rates that are rarer,
        and many more looks, are tests/service/triggers/triggers_test.c's.)"""
        runs, looks = 8, 12
        options = (self.rules(control={"one_in": 2}, at_most={"dumps": "off", "seconds": "off"}),)
        processes = [self.grow("wait=@end", options=options) for _ in range(runs)]

        def drawn(process):
            return [" no dump " not in line for line in self.log(process) if " dump control: " in line]

        self.wait_for("the looks", lambda: all(len(drawn(process)) >= looks for process in processes))
        decisions = [one for process in processes for one in drawn(process)[:looks]]
        count = len(decisions)
        self.assertEqual(count, runs * looks)
        # The most that both ends may have together.
        least = next(n for n in range(count) if 2 * sum(math.comb(count, i) for i in range(n + 1)) > 1e-9 * 2 ** count)
        self.assertGreaterEqual(sum(decisions), least)
        self.assertLessEqual(sum(decisions), count - least)
        self.assertGreater(least, count // 6)  # it is a bound
        for process in processes:
            self.end(process)
            dumps = [self.report(dump)["dump"]["trigger"] for dump in self.triggered(process)]
            self.assertEqual({dump["kind"] for dump in dumps} or {"control"}, {"control"})
            self.assertEqual(len(dumps), sum(" written control: " in line for line in self.log(process)))
            self.assertLessEqual(sum(drawn(process)) - len(dumps), 1)  # the run's end may come between the draw and the dump

    def test_the_rate_limit_is_said_and_what_it_forbade_comes_later(self):
        process = self.grow("wait=@end", options=(self.rules(control={"one_in": 1}, at_most={"dumps": 2, "seconds": 3600}),))
        self.wait_triggered(process, 2)
        self.wait_for("the refusal", lambda: any("are the limit, the next may come" in line for line in self.log(process)))
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 2)

    def test_below_the_defaults_nothing_is_dumped_and_no_log_is_made(self):
        process = self.grow(f"guilty={MIB}")
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(sorted(path.name for path in process.memlog_folder.iterdir()), ["0001.exit.pftrace"])


class Words(triggering.Case):
    def test_what_is_wrong_in_a_triggers_file_stops_the_run_and_is_named(self):
        path = self.folder / "wrong.json"
        path.write_text('{"footprint": {"browsre": "1M"}}')
        answer = subprocess.run(
            [str(harness.MEMLOG), "run", f"--triggers={path}", "--", "true"], capture_output=True, text=True, check=False,
            cwd=self.folder, env=self.environment(),
        )
        self.assertEqual(answer.returncode, 2)
        self.assertIn('unknown key "footprint.browsre"; did you mean "footprint.browser"?', answer.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
