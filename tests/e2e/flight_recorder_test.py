"""Of a process that is killed its last state is dumped, whoever killed it: somebody, itself, or the kernel for want of memory."""
import json
import os
import signal
import unittest

import groups
import harness
import triggering
from triggering import GROWER, MIB


def oom_kills():
    return triggering.first_number("/proc/vmstat", r"oom_kill (\d+)")


class FlightRecorder(triggering.Case):
    """The last state of who is killed, whoever did it."""

    def test_a_killed_process_leaves_its_last_state_and_one_that_ends_otherwise_does_not(self):
        """Of three children one ends by itself, one is asked to end, one is killed, from outside; that one alone is dumped."""
        before = oom_kills()
        process = self.grow(
            "fork", f"innocent={MIB}", "done=@there1", "wait=@leave", "end",
            "fork", f"innocent={2 * MIB}", "done=@there2", "wait=@end", "end",
            "fork", f"guilty={5 * MIB}", "done=@there3", "wait=@end", "end", "wait=@end", options=("--trigger-interval=1",))
        for name in ("there1", "there2", "there3"):
            self.there(name)
        sizes = (1, 2, 5)
        pids = {size: self.wait_for("a child", lambda size=size: self.rows(live_bytes=size * MIB))[0]["pid"] for size in sizes}
        self.go("leave")
        os.kill(pids[2], signal.SIGTERM)
        self.wait_for("the words about who was asked to end", lambda: self.told(process, "no dump", "killed", f"({pids[2]}) was ended by signal 15"))
        self.wait_for("the first one's end", lambda: self.rows(pid=pids[1], state="exited"))
        self.looks(process)
        self.assertEqual(self.triggered(process), [])
        os.kill(pids[5], signal.SIGKILL)
        report, trigger = self.check(self.wait_triggered(process, 1), "killed")
        killed = self.guilty_of(report)
        self.assertEqual((killed["pid"], killed["state"], killed["signal"], killed["live_bytes"]), (pids[5], "killed", 9, 5 * MIB))
        self.assertEqual(trigger["stack_bytes"], 5 * MIB)
        words = "was killed by SIGKILL" if oom_kills() == before else "was killed by "  # somebody else's at the same time is taken for ours
        self.assertIn(words, trigger["reason"])
        self.looks(process)
        self.end(process)
        self.assertEqual(len(self.triggered(process)), 1)
        self.assertEqual(len(self.told(process, "dump", "killed")), 1)

    def test_who_does_not_want_it_gets_none(self):
        process = self.grow("fork", f"guilty={5 * MIB}", "kill", "end", "wait=@end", options=(self.rules(killed=False),))
        self.wait_for("the decision", lambda: self.told(process, "no dump", "killed", "was ended by signal 9"))
        self.end(process)
        self.assertEqual([path.name for path in process.memlog_folder.glob("*.pftrace")], ["0001.exit.pftrace"])

    def test_the_last_of_a_tree_that_is_killed_is_told_by_the_last_dump(self):
        process = self.grow(f"guilty={5 * MIB}", "kill")
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(process.returncode, 128 + 9)
        (dump,) = process.memlog_folder.glob("*.pftrace")
        report = self.report(dump)
        self.assertEqual(report["dump"]["reason"], "exit")
        self.assertEqual(report["dump"]["trigger"]["kind"], "killed")
        self.assertIn("guilty", [frame["function"] for frame in report["dump"]["trigger"]["frames"]][:3])
        self.assertEqual(self.guilty_of(report)["live_bytes"], 5 * MIB)

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
