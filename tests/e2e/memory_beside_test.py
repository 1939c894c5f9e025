"""A program's memory as its own tools tell it, beside memlog's: tools/bench/beside on the programs that tests have anyway."""
import re
import subprocess
import unittest

import harness

SECONDS = 240
ROW = re.compile(r"\| (?P<program>[^|]+) \| (?P<who>[^|]+) \| (?P<what>[^|]+) \| (?P<theirs>[\d.]+) \| (?P<which>[^|]+) \| (?P<ours>[\d.]+) \| ")
# What reads the same files says the same, but for what is rounded; what is counted otherwise or at another moment is near.
SAME_MIB = 0.11
NEAR = 0.1
# node asks itself, and collects garbage before the dump.
BEFORE = 0.25
# redis counts its blocks with what the allocator rounds them up to.
ROUNDED_UP = 0.25


class Beside(harness.Case):
    def rows(self, *programs):
        words = [str(harness.ROOT / "tools/bench/beside"), f"--out={harness.OUT}", f"--only={','.join(programs)}"]
        answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS, env=self.environment())
        found = {}
        for match in ROW.finditer(answer.stdout):
            found[match["program"], match["what"]] = float(match["theirs"]), float(match["ours"])
        self.assertTrue(found, answer.stderr)
        return found, answer.stderr

    def check(self, program, label, what, part):
        found, said = self.rows(program)
        theirs, ours = found[label, "Rss"]
        self.assertAlmostEqual(ours, theirs, delta=SAME_MIB, msg=said)
        theirs, ours = found[label, "Pss"]
        self.assertAlmostEqual(ours, theirs, delta=max(0.5, 0.02 * theirs), msg=said)  # others come and go
        theirs, ours = found[label, what]
        self.assertAlmostEqual(ours, theirs, delta=part * theirs, msg=said)

    def test_node_and_pmap(self):
        self.check("node", "node", "rss", BEFORE)

    def test_redis_and_pmap(self):
        self.check("redis", "redis (jemalloc)", "used_memory", ROUNDED_UP)

    def test_a_postgres_backend_and_pmap(self):
        self.check("PostgreSQL", "PostgreSQL, a backend", "total_bytes", NEAR)


if __name__ == "__main__":
    unittest.main()
