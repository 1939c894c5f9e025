"""Dumps for memories that fill or are short, before anybody is killed; and that a service which follows on a dead one
does not take the same dumps again."""
import os
import pathlib
import signal
import unittest

import groups
import harness
import triggering
from triggering import GROWER, MIB

CALM = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
PSI = pathlib.Path("/proc/pressure/memory")


class Memory(triggering.Case):
    def once(self, process, kind):
        """One dump of that kind, which names the guilty stack; no second one while nothing changes."""
        found = self.check(self.wait_triggered(process, 1), kind)
        self.looks(process, 3)
        self.assertEqual(len(self.triggered(process)), 1)
        return found

    @unittest.skipUnless(PSI.exists() and os.geteuid() == 0, "needs root to put a file in the place of the kernel's")
    def test_pressure(self):
        """The kernel's own file is covered by one that the test writes."""
        file = self.folder / "pressure"
        file.write_text(CALM)
        process = self.grow(
            f"guilty={9 * MIB}", "wait=@end", options=(self.rules(pressure={"some_percent": 20}),),
            before=("unshare", "-m", "sh", "-c", f'mount --bind {file} {PSI} && exec "$@"', "sh"),
        )
        self.looks(process)
        with open(file, "r+", encoding="ascii") as text:  # in place: another file would not be the one that is mounted
            text.write(CALM.replace("some avg10=0.00", "some avg10=19.9", 1))
        self.looks(process)
        self.assertEqual(self.triggered(process), [])
        with open(file, "r+", encoding="ascii") as text:
            text.write(CALM.replace("some avg10=0.00", "some avg10=20.0", 1))
        _, trigger = self.once(process, "pressure")
        self.assertIn("20.00 % of the last 10 s", trigger["reason"])
        self.end(process)

    def in_group(self, limit_bytes, *words, options, swap=True):
        group = groups.make(self, limit_bytes, swap)
        if group is None:
            self.skipTest("no control group can be made here")
        process = self.memlog_start(
            "/bin/sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *words, options=("-q", "--no-page", *options))
        return group, process

    def test_the_time_until_a_groups_limit(self):
        steps = [self.folder / f"step{step}" for step in range(12)]
        actions = [word for step in steps for word in (f"wait={step}", f"guilty={4 * MIB}")]
        group, process = self.in_group(
            64 * MIB, GROWER, "-", *actions, f"wait={self.folder}/end", options=(self.rules(time_to_limit={"seconds": 20}),))
        self.looks(process, 4)
        self.assertEqual(self.triggered(process), [])
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
        go, file = self.folder / "go", self.folder / "file"
        script = f"{GROWER} - guilty={5 * MIB} wait={self.folder}/end & while ! [ -e {go} ]; do sleep 0.05; done; " \
                 f"dd if=/dev/zero of={file} bs=1M count=100 2>{self.folder}/dd; wait"
        group, process = self.in_group(32 * MIB, "/bin/sh", "-c", script, options=(self.rules(pressure={"events": True}),), swap=False)
        self.looks(process)
        self.assertEqual(self.triggered(process), [])
        go.touch()
        _, trigger = self.check(self.wait_triggered(process, 1), "pressure")
        self.assertIn(f"{group.name} came to its limit", trigger["reason"])
        self.end(process)


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
