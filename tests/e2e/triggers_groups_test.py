"""Dumps for control groups that fill, before the kernel kills: of who fills them, whichever group around him is the tightest."""
import os
import unittest

import groups
import triggering
from triggering import GROWER, MIB


@unittest.skipUnless(os.geteuid() == 0, "needs root to make groups, and to put files in the place of the kernel's")
class Group(triggering.MemoryCase):
    def test_a_groups_limit_is_seen_before_it_kills(self):
        group = self.group(64 * MIB)
        process = self.in_group(
            group, GROWER, "-", f"guilty={20 * MIB}", f"wait={self.folder}/go", f"guilty={34 * MIB}", f"wait={self.folder}/end",
            options=(self.rules(limit={"percent": 80}),))
        self.below(process, "limit", group.name)
        self.go("go")
        report, trigger = self.once(process, "limit", group.name)
        self.assertIn(group.name, trigger["reason"])
        self.assertEqual(self.guilty_of(report)["state"], "running")
        self.assertEqual(groups.kills(group), 0)
        self.end(process)

    def test_a_groups_limit_names_the_largest_of_that_group_and_not_of_the_tree(self):
        """The tree's largest process is outside; the one that fills the group was moved there while it ran."""
        group = self.group(64 * MIB)
        process = self.grow(
            f"innocent={90 * MIB}", "fork", f"innocent={4 * MIB}", "wait=@end", "end", "fork", f"innocent={MIB}", "done=@there",
            "wait=@go", f"guilty={54 * MIB}", "wait=@end", "end", "wait=@end", options=(self.rules(limit={"percent": 80}),),
            before=self.calm())
        self.there()
        children = [self.wait_for("a child", lambda size=size: self.rows(live_bytes=size * MIB))[0]["pid"] for size in (4, 1)]
        for child in children:
            (group / "cgroup.procs").write_text(str(child))
        self.below(process, "limit", group.name)
        self.go("go")
        report, trigger = self.once(process, "limit", group.name)
        self.assertIn(group.name, trigger["reason"])
        self.assertEqual(self.guilty_of(report)["pid"], children[1])
        self.assertEqual((trigger["stack_bytes"], self.guilty_of(report)["live_bytes"]), (54 * MIB, 55 * MIB))
        self.assertEqual(max(one["live_bytes"] for one in report["processes"]), 90 * MIB)
        self.end(process)

    def test_the_tighter_limit_of_a_group_around_it(self):
        """Two groups with room enough stand in one that has less: that one kills, so that one is looked at, and all that are in it count."""
        outer = self.group(64 * MIB)
        inner, beside = (self.group(512 * MIB, inside=outer) for _ in range(2))
        process = self.grow(
            "fork", f"innocent={2 * MIB}", "wait=@moved", f"innocent={18 * MIB}", "done=@grown", "wait=@end", "end",
            "fork", f"innocent={MIB}", "done=@there", "wait=@go", f"guilty={36 * MIB}", "wait=@end", "end", f"innocent={90 * MIB}", "wait=@end", options=(self.rules(limit={"percent": 80}),),
            before=self.calm())
        self.there()
        children = [self.wait_for("a child", lambda size=size: self.rows(live_bytes=size * MIB))[0]["pid"] for size in (2, 1)]
        for child, group in zip(children, (beside, inner)):
            (group / "cgroup.procs").write_text(str(child))
        self.go("moved")
        self.there("grown")
        own = rf"{outer.name} has used"
        self.below(process, "limit", own)
        self.below(process, "limit", f"/{inner.name} has used")
        self.below(process, "limit", f"/{beside.name} has used")
        self.go("go")
        report, trigger = self.once(process, "limit", own)
        self.assertRegex(trigger["reason"], rf"^cgroup \S*/{outer.name} has used \S+ MiB of its 64.0 MiB")
        self.assertEqual((self.guilty_of(report)["pid"], trigger["stack_bytes"]), (children[1], 36 * MIB))
        self.assertEqual(groups.kills(outer), 0)
        self.end(process)

    def test_the_time_until_a_groups_limit(self):
        group = self.group(64 * MIB)
        steps = [self.folder / f"step{step}" for step in range(12)]
        actions = [word for step in steps for word in (f"wait={step}", f"guilty={4 * MIB}")]
        process = self.in_group(
            group, GROWER, "-", *actions, f"wait={self.folder}/end", options=(self.rules(time_to_limit={"seconds": 20}),))
        self.below(process, "time_to_limit", group.name, more=4)
        for step in steps:  # 4 MiB a look: sooner or later that is twenty seconds from the limit
            step.touch()
            self.looks(process, 1)
            if self.triggered(process):
                break
        _, trigger = self.check(self.wait_triggered(process, 1), "time_to_limit")
        self.assertRegex(trigger["reason"], rf"{group.name} grows by .* a second and is at its limit in \d+ s")
        for step in steps:
            step.touch()
        self.end(process)

    def test_a_group_that_comes_to_its_limit(self):
        """What it writes into files fills it up; the kernel takes that back and counts (of the limit with swap some do not)."""
        group = self.group(32 * MIB, with_swap=False)
        go, file = self.folder / "go", self.folder / "file"
        script = f"{GROWER} - guilty={5 * MIB} wait={self.folder}/end & while ! [ -e {go} ]; do sleep 0.05; done; " \
                 f"dd if=/dev/zero of={file} bs=1M count=100 2>{self.folder}/dd; wait"
        process = self.in_group(group, "/bin/sh", "-c", script, options=(self.rules(pressure={"events": True}),))
        self.below(process, "pressure", group.name)
        go.touch()
        report, trigger = self.check(self.wait_triggered(process, 1), "pressure")
        self.assertIn(f"{group.name} came to its limit", trigger["reason"])
        self.assertEqual(self.guilty_of(report)["live_bytes"], 5 * MIB)
        self.end(process)


if __name__ == "__main__":
    unittest.main(verbosity=2)
