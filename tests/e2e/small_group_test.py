"""memlog in a control group with little memory of its own: what the service keeps fits into it, the program beside it loses nothing but
figures, and a service that the kernel ends for its memory is replaced."""
import json
import pathlib
import subprocess
import unittest

import groups
import harness

OVERLOAD = harness.PROGRAMS / "oracle" / "overload"
CODE = 42
MIB = 1 << 20
LIMIT = 64 * MIB
KEEP = 400_000  # live blocks of each thread: a live map of some 20 MiB, where the service may have 16


class SmallGroup(harness.Case):
    def group(self, limit_bytes):
        group = groups.make(self, limit_bytes)
        if group is None:
            self.skipTest("no control group can be made here")
        return group

    def start(self, group, milliseconds, *options):
        """memlog in the group, its program outside."""
        outside = "; ".join(f"echo $$ >{path}" for path in [group.parent / "cgroup.procs"])
        program = ("/bin/sh", "-c", f'{outside}; exec "$@"', "sh", OVERLOAD, "2", str(milliseconds), str(KEEP))
        inside = ("/bin/sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh")
        return self.memlog_ready(*program, options=("--no-page", *options), before=inside)

    def ended(self, process):
        """The program's own end is as without memlog; the report."""
        self.assertRegex(process.stdout.readline().decode(), r"done \d+ ok\n")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), CODE)
        return self.exit_report(harness.Run(CODE, b"", "", process.memlog_folder))

    def members(self, group):
        names = []
        for pid in (group / "cgroup.procs").read_text().split():
            names.append(harness.comm_of(pid))
        return names

    def test_what_the_service_keeps_fits_into_its_group(self):
        group = self.group(LIMIT)
        process = self.start(group, 3000)
        self.wait_for("host and service", lambda: sorted(self.members(group)) == ["memlog", "memlog-service"])
        self.go(process)
        report = self.ended(process)
        self.assertEqual(groups.kills(group), 0)
        (entry,) = [one for one in report["processes"] if one["name"] == "overload"]
        self.assertIn("its memory of 16 MiB ran short", report["dump"]["service_trouble"], "a quarter of the group's")
        self.assertEqual(report["dump"]["gaps"], [])
        self.assertEqual(entry["exit_code"], CODE)

    def test_a_service_that_its_group_kills_is_replaced(self):
        group = self.group(LIMIT)
        process = self.start(group, 600_000, "--service-memory=1G")
        first = harness.service_of(process.pid)
        # The host goes on elsewhere, and so do the services that follow.
        (group.parent / "cgroup.procs").write_text(str(process.pid))
        self.wait_for("the service alone", lambda: self.members(group) == ["memlog-service"])
        limit = group / ("memory.max" if (group / "memory.max").exists() else "memory.limit_in_bytes")
        self.go(process)
        self.wait_for("events", lambda: self.rows() and self.rows()[-1]["events"] > 100_000)
        self.starve(group, limit)
        self.wait_for("another service", lambda: harness.service_of(process.pid) != first)
        self.go(process)  # enough
        report = self.ended(process)
        self.assertGreater(groups.kills(group), 0)
        self.assertIn("memlog-service was killed by signal 9", "; ".join(gap["reason"] for gap in report["dump"]["gaps"]))
        self.assertFalse(report["dump"]["complete"])

    def starve(self, group, limit):
        """Less than it has by now, or will have soon; version 1 takes no limit below what is used."""
        for mib in (4, 8, 16, 24, 32):
            try:
                for name in (limit, group / limit.name.replace("memory.", "memory.memsw.")):
                    if name.exists():
                        name.write_text(str(mib * MIB))
                return
            except OSError:
                continue

    def rows(self):
        answer = subprocess.run([str(harness.MEMLOG), "ps", "--json"], capture_output=True, text=True, env=self.environment(), check=False)
        return json.loads(answer.stdout)["processes"] if answer.returncode == 0 else []


if __name__ == "__main__":
    unittest.main(verbosity=2)
