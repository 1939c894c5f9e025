"""Dumps for memories that fill or are short, before anybody is killed: the machine's, and groups of version 2; and that a service which
follows on a dead one does not take the same dumps again. (Groups that the kernel counts for are triggers_groups_test.py's.)"""
import os
import pathlib
import re
import signal
import unittest

import groups
import harness
import triggering
from triggering import MEMINFO, MIB, Figures, machine, pressure

PSI = pathlib.Path("/proc/pressure/memory")
UNIFIED = next((path for path in (groups.CGROUPS / "unified", groups.CGROUPS) if (path / "cgroup.controllers").exists()), None)
GIB = 1 << 30
NEEDS_ROOT = unittest.skipUnless(os.geteuid() == 0, "needs root to put files in the place of the kernel's")


class Machine(triggering.MemoryCase):
    @NEEDS_ROOT
    def test_the_machines_limit(self):
        meminfo = machine(self.folder / "meminfo")
        process = self.grow(
            "fork", f"innocent={3 * MIB}", "done=@there", "wait=@end", "end", f"guilty={9 * MIB}", "wait=@end",
            options=(self.rules(limit={"percent": 80}),), before=self.mounts(**{str(MEMINFO): meminfo.path}))
        self.there()
        self.below(process, "limit", "this machine")
        meminfo.set(available=(16 << 20) * 21 // 100)
        self.below(process, "limit", "this machine")
        meminfo.set(available=(16 << 20) * 20 // 100)
        report, trigger = self.once(process, "limit", "this machine")
        self.assertEqual(trigger["reason"], "this machine has used 12.8 GiB of its 16.0 GiB, 80 %, 80 % are the threshold")
        self.assertEqual(self.guilty_of(report)["live_bytes"], 9 * MIB)
        # It is armed again by five points less.
        meminfo.set(available=(16 << 20) * 26 // 100)
        self.below(process, "limit", "this machine", dumps=1)
        meminfo.set(available=(16 << 20) * 10 // 100)
        self.check(self.wait_triggered(process, 2), "limit")
        self.end(process)

    @NEEDS_ROOT
    def test_the_time_until_the_machines_limit(self):
        meminfo = machine(self.folder / "meminfo")
        process = self.grow(
            f"guilty={9 * MIB}", "wait=@end", options=(self.rules(time_to_limit={"seconds": 60}),),
            before=self.mounts(**{str(MEMINFO): meminfo.path}))
        self.below(process, "time_to_limit", "this machine", more=4)
        for left in range(97, 0, -3):  # three hundredths a look: sooner or later that is a minute from the limit
            meminfo.set(available=(16 << 20) * left // 100)
            self.looks(process, 1)
            if self.triggered(process):
                break
        _, trigger = self.check(self.wait_triggered(process, 1), "time_to_limit")
        seconds = int(re.fullmatch(r"this machine grows by \S+ \S+ a second and is at its limit in (\d+) s", trigger["reason"])[1])
        self.assertLessEqual(seconds, 60)
        self.end(process)

    @unittest.skipUnless(PSI.exists(), "a kernel that tells pressure")
    @NEEDS_ROOT
    def test_pressure(self):
        for which, words in (("some", "some"), ("full", "all")):
            with self.subTest(which):
                psi, end = pressure(self.folder / which), f"end-{which}"
                process = self.grow(
                    f"guilty={9 * MIB}", f"wait=@{end}", options=(self.rules(pressure={f"{which}_percent": 20}),),
                    before=self.mounts(**{str(PSI): psi.path}))
                self.below(process, "pressure", "this machine")
                psi.set(**{which: 19.9})
                self.below(process, "pressure", "this machine")
                psi.set(**{which: 20.0})
                _, trigger = self.once(process, "pressure", "this machine")
                self.assertIn(f"{words} of its tasks waited for memory 20.00 % of the last 10 s", trigger["reason"])
                self.end(process, end)


@NEEDS_ROOT
@unittest.skipIf(UNIFIED is None, "a kernel with control groups of version 2")
class Version2(triggering.MemoryCase):
    """Groups of version 2 whose figures the test writes: where the kernel counts memory by version 1 it has none of its own there."""

    def setUp(self):
        super().setUp()
        self.outer = UNIFIED / f"memlog-test-{os.getpid()}-v2"
        self.inner = self.outer / "inner"
        for group in (self.outer, self.inner):
            try:
                group.mkdir()
            except OSError as error:
                self.skipTest(f"no control group can be made here: {error}")
            self.addCleanup(groups.remove, group)
        self.root = self.folder / "root"
        self.figures = {}
        for name, path, limit in (("outer", self.outer, GIB), ("inner", self.inner, 8 * GIB)):
            folder = self.root / path.relative_to(UNIFIED)
            self.figures[name] = {
                "current": Figures(folder / "memory.current", "{bytes}", bytes=GIB // 10),
                "max": Figures(folder / "memory.max", "{bytes}", bytes=limit),
                "stat": Figures(folder / "memory.stat", "anon 1\ninactive_file {bytes}", bytes=0),
                "events": Figures(folder / "memory.events", "low 0\nhigh {high}\nmax {max}\noom 0\noom_kill 0", high=5, max=7),
                "pressure": pressure(folder / "memory.pressure"),
            }
        self.name = f"/{self.outer.name}"

    def start(self, **rules):
        """The root outside, with most; a child with the guilty stack in the inner group."""
        process = self.grow(
            f"innocent={30 * MIB}", "fork", f"guilty={9 * MIB}", "done=@there", "wait=@end", "end", "wait=@end", options=(self.rules(**rules),),
            before=self.mounts(**{str(MEMINFO): machine(self.folder / "calm").path, str(groups.CGROUPS): self.root}))
        self.there()
        child = self.wait_for("the child", lambda: self.rows(live_bytes=9 * MIB))[0]["pid"]
        (self.inner / "cgroup.procs").write_text(str(child))
        return process, child

    def guilty_once(self, process, child, kind, word):
        report, trigger = self.once(process, kind, word)
        self.assertEqual(self.guilty_of(report)["pid"], child)
        self.end(process)
        return trigger["reason"]

    def test_the_tighter_limit_of_a_group_around_it(self):
        process, child = self.start(limit={"percent": 80})
        self.below(process, "limit", f"{self.name} has used")
        self.below(process, "limit", f"{self.name}/inner has used")
        self.figures["outer"]["stat"].set(bytes=GIB // 10)  # the page cache gives that back at once
        self.figures["outer"]["current"].set(bytes=GIB * 85 // 100)
        self.below(process, "limit", f"{self.name} has used")
        self.figures["outer"]["stat"].set(bytes=0)
        reason = self.guilty_once(process, child, "limit", f"{self.name} has used")
        self.assertIn(f"cgroup {self.name} has used 870.4 MiB of its 1.0 GiB, 85 %", reason)

    def test_high_and_max_events_of_a_group_around_it(self):
        process, child = self.start(pressure={"events": True})
        self.below(process, "pressure", f"{self.name} has not come to its limit")
        self.figures["outer"]["events"].set(high=6, max=9)
        reason = self.guilty_once(process, child, "pressure", f"{self.name} has not come to its limit")
        self.assertIn(f"cgroup {self.name} came to its limit: the kernel counted 1 times high, 2 times max", reason)

    def test_pressure_inside_of_a_group(self):
        process, child = self.start(pressure={"full_percent": 10})
        self.figures["inner"]["pressure"].set(full=9.99)
        self.below(process, "pressure", f"{self.name}/inner: all")
        self.figures["inner"]["pressure"].set(full=10.5)
        reason = self.guilty_once(process, child, "pressure", f"{self.name}/inner: all")
        self.assertIn(f"cgroup {self.name}/inner: all of its tasks waited for memory 10.50 % of the last 10 s", reason)


class Restart(triggering.Case):
    def test_a_service_that_follows_takes_no_dump_again(self):
        process = self.grow(
            f"guilty={12 * MIB}", "wait=@go", f"guilty={9 * MIB}", "wait=@end", options=(self.rules(
                footprint={"browser": "10M", "again": "7M"}, limit={"percent": 1}, at_most={"dumps": 2, "seconds": 3600}),))
        self.wait_for("the dumps", lambda: sum(" written " in line for line in self.log(process)) >= 1)
        self.looks(process)
        before = len(self.triggered(process))
        service = harness.service_of(process.pid)
        os.kill(service, signal.SIGKILL)
        self.wait_for("another service", lambda: harness.service_of(process.pid) != service)
        self.looks(process, 4)
        self.assertEqual(len(self.triggered(process)), before)
        # What is new is dumped, within the limit that the former one's dumps count for.
        (self.folder / "go").touch()
        if before < 2:
            self.wait_triggered(process, before + 1)
        else:
            self.wait_for("the limit", lambda: any("dumps in 3600 s are the limit" in line for line in self.log(process)))
        self.end(process)


if __name__ == "__main__":
    unittest.main(verbosity=2)
