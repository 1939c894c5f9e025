"""Dumps that memlog takes unasked: one for each threshold that is crossed, of the right process, with the guilty stack;
none below it."""
import json
import math
import subprocess
import unittest

import groups
import harness
import triggering
from triggering import GROWER, MIB


class Triggers(triggering.Case):
    def test_a_footprint_over_its_threshold_dumps_once_and_again_after_the_step(self):
        process = self.grow(
            f"guilty={4 * MIB}", "wait=@go1", f"guilty={8 * MIB}", "wait=@go2", f"guilty={8 * MIB}", "wait=@end",
            options=(self.rules(footprint={"browser": "10M", "again": "7M"}),),
        )
        self.wait_for("a look at the program", lambda: any("the nearest is browser grower" in line for line in self.log(process)))
        self.looks(process)
        self.assertEqual(self.triggered(process), [])
        (self.folder / "go1").touch()
        report, trigger = self.check(self.wait_triggered(process, 1), "footprint")
        (member,) = report["processes"]
        self.assertEqual(trigger["process_id"], member["id"])
        self.assertGreater(member["footprint_bytes"], 10 * MIB)
        self.assertGreaterEqual(trigger["stack_bytes"], 12 * MIB)
        self.looks(process)
        self.assertEqual(len(self.triggered(process)), 1)
        (self.folder / "go2").touch()
        self.check(self.wait_triggered(process, 2), "footprint")
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 2)
        self.assertEqual(sum(" dump footprint:" in line and " no dump" not in line for line in self.log(process)), 2)
        self.assertEqual(sum(" written footprint:" in line for line in self.log(process)), 2)

    def test_the_short_flags_do_the_same_for_the_right_process_of_a_tree(self):
        process = self.grow(
            "fork", "wait=@there", f"guilty={9 * MIB}", "wait=@end", "end",
            "fork", f"innocent={2 * MIB}", "done=@there", "wait=@end", "end", "wait=@end",
            options=("--threshold=other=8M", "--trigger-interval=1"),
        )
        report, trigger = self.check(self.wait_triggered(process, 1), "footprint")
        (guilty,) = [one for one in report["processes"] if one["id"] == trigger["process_id"]]
        self.assertGreaterEqual(guilty["live_bytes"], 9 * MIB)
        self.assertEqual(len(report["processes"]), 3)
        self.looks(process)
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 1)

    def test_growth_names_who_grew_and_not_who_holds_most(self):
        process = self.grow(
            f"innocent={30 * MIB}", "done=@there", "wait=@go", f"guilty={6 * MIB}", "wait=@end",
            options=(self.rules(growth={"bytes": "5M", "seconds": 600}),),
        )
        self.wait_for("the start", (self.folder / "there").exists)
        self.looks(process)
        (self.folder / "go").touch()
        _, trigger = self.check(self.wait_triggered(process, 1), "growth")
        self.assertEqual(trigger["stack_bytes"], 6 * MIB)
        self.looks(process)
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
                go, end = f"go-{kind}", f"end-{kind}"
                process = self.grow(
                    f"innocent={4 * MIB}", f"wait=@{go}", f"guilty={6 * MIB}", "drop", f"guilty={6 * MIB}", f"wait=@{end}",
                    options=(self.rules(**rules),),
                )
                self.looks(process)
                self.assertEqual(self.triggered(process), [])
                (self.folder / go).touch()
                self.check(self.wait_triggered(process, 1), kind)
                self.looks(process)
                self.end(process, end)
                self.assertEqual(len(self.triggered(process)), 1)

    def test_an_interval_and_a_certain_control_sample(self):
        process = self.grow("wait=@end", options=(self.rules(every_seconds=2),))
        self.check(self.wait_triggered(process, 2), "every", None)
        self.end(process)
        (self.folder / "end").unlink()
        process = self.grow("wait=@end", options=(self.rules(control={"one_in": 1}),))
        self.check(self.wait_triggered(process, 1), "control", None)
        self.end(process)
        (self.folder / "end").unlink()
        process = self.grow("wait=@end", options=(self.rules(control={"one_in": 4_000_000_000}),))
        self.looks(process, 3)
        self.end(process)
        self.assertEqual(self.triggered(process), [])
        self.assertIn("no dump control: not drawn", self.log(process)[0])

    def test_a_control_sample_comes_at_half_of_the_looks(self):
        """Of eight runs' first looks, twelve each: fewer or more than a fair coin gives but once in 10^9 times. (Rates that are rarer,
        and many more looks, are tests/service/triggers_test.c's.)"""
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

    def test_the_machines_limit_and_the_time_until_it(self):
        """One percent of any machine's memory is in use."""
        process = self.grow("wait=@end", options=(self.rules(limit={"percent": 1}),))
        _, trigger = self.check(self.wait_triggered(process, 1), "limit", None)
        self.assertRegex(trigger["reason"], "this machine|cgroup")
        self.looks(process)
        self.end(process)
        kinds = [json.dumps(self.report(dump)["dump"]["trigger"]["reason"]) for dump in self.triggered(process)]
        self.assertEqual(len(kinds), len(set(kinds)), kinds)

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

    def test_a_killed_process_leaves_its_last_state_whoever_killed_it(self):
        process = self.grow("fork", f"guilty={5 * MIB}", "kill", "end", "wait=@end")
        report, trigger = self.check(self.wait_triggered(process, 1), "killed")
        (killed,) = [one for one in report["processes"] if one["state"] == "killed"]
        self.assertEqual(trigger["process_id"], killed["id"])
        self.assertEqual(killed["live_bytes"], 5 * MIB)
        self.assertIn("SIGKILL", trigger["reason"])
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 1)

    def test_the_last_of_a_tree_that_is_killed_is_told_by_the_last_dump(self):
        process = self.grow(f"guilty={5 * MIB}", "kill")
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(process.returncode, 128 + 9)
        (dump,) = process.memlog_folder.glob("*.pftrace")
        report = self.report(dump)
        self.assertEqual(report["dump"]["reason"], "exit")
        self.assertEqual(report["dump"]["trigger"]["kind"], "killed")
        self.assertIn("guilty", [frame["function"] for frame in report["dump"]["trigger"]["frames"]][:3])

    def test_the_oom_killers_victim_leaves_what_ate_the_memory(self):
        group = groups.make(self, 48 * MIB)
        if group is None:
            self.skipTest("no control group can be made here")
        eat = [f"guilty={2 * MIB}"] * 60
        for _ in range(8):
            process = self.memlog_start(
                "/bin/sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", GROWER, "-",
                "fork", *eat, "end", f"wait={self.folder}/end",
            )
            self.wait_for("a dump or the end", lambda run=process: self.triggered(run) or run.poll() is not None)
            if self.triggered(process):
                break
            # The kernel took its parent, too, and with it the run: the exit dump tells of it.
            (dump,) = process.memlog_folder.glob("*.exit.pftrace")
            self.assertIn("out of memory", json.dumps(self.report(dump)["dump"]))
        try:
            report, trigger = self.check(self.wait_triggered(process, 1), "killed")
            (killed,) = [one for one in report["processes"] if one["state"] == "killed"]
            self.assertIn("out of memory", trigger["reason"])
            self.assertGreater(killed["live_bytes"], 30 * MIB)
            self.assertGreater(trigger["stack_bytes"], 30 * MIB)
        finally:
            self.end(process)

    def test_a_groups_limit_is_seen_before_it_kills(self):
        group = groups.make(self, 64 * MIB)
        if group is None:
            self.skipTest("no control group can be made here")
        process = self.memlog_start(
            "/bin/sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", GROWER, "-",
            f"guilty={20 * MIB}", f"done={self.folder}/there", f"wait={self.folder}/go", f"guilty={34 * MIB}",
            f"wait={self.folder}/end", options=("-q", "--no-page", self.rules(limit={"percent": 80})),
        )
        self.wait_for("the start", (self.folder / "there").exists)
        self.looks(process)
        (self.folder / "go").touch()
        report, trigger = self.check(self.wait_triggered(process, 1), "limit")
        self.assertIn(group.name, trigger["reason"])
        self.assertEqual(report["processes"][-1]["state"], "running")
        self.end(process)

    def test_a_groups_limit_names_the_largest_of_that_group_and_not_of_the_tree(self):
        """The tree's largest process is outside; the one that fills the group was moved there while it ran."""
        group = groups.make(self, 64 * MIB)
        if group is None:
            self.skipTest("no control group can be made here")
        process = self.grow(
            f"innocent={90 * MIB}", "fork", f"innocent={4 * MIB}", "wait=@end", "end", "fork", f"innocent={MIB}", "done=@there",
            "wait=@go", f"guilty={54 * MIB}", "wait=@end", "end", "wait=@end", options=(self.rules(limit={"percent": 80}),))
        self.wait_for("the start", (self.folder / "there").exists)
        self.looks(process)
        answer = subprocess.run(
            [str(harness.MEMLOG), "ps", "--json"], capture_output=True, text=True, check=True, env=self.environment())
        root, *children = sorted(json.loads(answer.stdout)["processes"], key=lambda row: row["parent_pid"] != process.pid)
        self.assertEqual(len(children), 2, answer.stdout)
        for child in children:
            (group / "cgroup.procs").write_text(str(child["pid"]))
        self.looks(process)
        machine = len(self.triggered(process))  # of a machine that is full itself
        (self.folder / "go").touch()
        report, trigger = self.check(self.wait_triggered(process, machine + 1), "limit")
        self.assertIn(group.name, trigger["reason"])
        (named,) = [one for one in report["processes"] if one["id"] == trigger["process_id"]]
        self.assertIn(named["pid"], [child["pid"] for child in children])
        self.assertEqual((trigger["stack_bytes"], named["live_bytes"]), (54 * MIB, 55 * MIB))
        self.assertGreater(max(one["live_bytes"] for one in report["processes"] if one["pid"] == root["pid"]), 90 * MIB - 1)
        self.end(process)

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
