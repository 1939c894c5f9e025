"""The stacks of real programs against libunwind's, by tools/dev/check/stacks.py: a few of each, its whole run is for people."""
import re
import subprocess
import sys
import unittest

import harness

# Programs whose stacks libunwind can walk to the end, and how many of them at least must have been compared.
LEAST = {"sqlite3": 100, "python3": 500, "perl": 100}


class Stacks(harness.Case):
    def test_real_programs_have_libunwinds_stacks(self):
        words = [sys.executable, harness.ROOT / "tools/dev/check/stacks.py", f"--out={harness.OUT}", "--every=30", *LEAST]
        answer = subprocess.run(words, env=self.environment(), capture_output=True, text=True, timeout=500, check=False)
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr)
        for name, least in LEAST.items():
            line = re.search(rf"^{re.escape(name)} +([\d,]+) +([\d,]+) +0 ", answer.stdout, re.M)
            self.assertIsNotNone(line, answer.stdout)
            self.assertGreater(int(line[2].replace(",", "")), least, answer.stdout)


if __name__ == "__main__":
    unittest.main()
