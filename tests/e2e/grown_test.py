"""A threshold dump names the component that grew since the process's dump before, or since its first reading: the heap is not blamed
for what it does not hold."""
import subprocess
import unittest

import harness
import triggering
from triggering import MIB

# Holds some heap from its start on; each line that it reads maps so many MiB more. The kernel fills them: a bytes object to write
# into them would itself be heap while the trigger looks.
PROGRAM = """
import mmap, sys
kept = [bytearray(3 << 20)]
print("ready", flush=True)
for line in sys.stdin:
    kept.append(mmap.mmap(-1, int(line) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE))
    print("grown", flush=True)
"""


class Grown(triggering.Case):
    def start(self, threshold):
        rules = self.rules(footprint={"browser": f"{threshold}M", "again": "50M"})
        process = self.memlog_start("/usr/bin/python3", "-c", PROGRAM, options=("-q", "--no-page", rules), stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def grow_by(self, process, mib):
        process.stdin.write(f"{mib}\n".encode())
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"grown\n")

    def text_of(self, dump):
        answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        return " ".join(answer.stdout.decode().split())

    def grown_of(self, dump):
        grown = self.report(dump)["dump"]["trigger"]["grown"]
        parts = {one["name"]: one["private_bytes"] for one in grown["components"]}
        self.assertEqual(sum(parts.values()), grown["private_bytes"])
        return grown, parts

    def dump_now(self):
        answer = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_a_footprint_is_blamed_on_the_component_that_grew_since_the_dump_before(self):
        process = self.start(threshold=100)
        self.grow_by(process, 40)
        self.dump_now()
        self.grow_by(process, 80)
        first = self.wait_triggered(process, 1)
        self.grow_by(process, 60)
        second = self.wait_triggered(process, 2)
        process.communicate(b"", harness.TIMEOUT)
        for dump, mib in ((first, 80), (second, 60)):
            grown, parts = self.grown_of(dump)
            name = max(parts, key=parts.get)
            self.assertIn(name, ("mapped", "other anonymous"))
            # The trigger may look while the kernel still fills them, which it does after the threshold has been crossed.
            self.assertGreaterEqual(parts[name], mib // 2 * MIB)
            self.assertLess(parts[name], (mib + 3) * MIB)
            self.assertLess(abs(parts["heap"]), 2 * MIB)
            self.assertTrue(grown["since"])
            self.assertRegex(self.text_of(dump), rf"grew \S+ MiB since \S+: {name} \+\S+ MiB, .*heap [+-]")

    def test_without_a_trigger_nothing_is_compared(self):
        process = self.start(threshold=1000)
        self.dump_now()
        self.grow_by(process, 10)
        self.dump_now()
        process.communicate(b"", harness.TIMEOUT)
        for dump in process.memlog_folder.glob("*.manual.pftrace"):
            self.assertNotIn(" grew ", self.text_of(dump))


if __name__ == "__main__":
    unittest.main()
