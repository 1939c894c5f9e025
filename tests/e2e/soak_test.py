"""tools/dev/soak in its short form: parts of memlog are killed at random for a minute."""
import subprocess
import unittest

import harness

# Of tools/dev/soak: a promise is broken, not a limit overrun that is there against hanging.
WRONG = 3


class Soak(unittest.TestCase):
    def test_a_minute_of_kills_breaks_no_promise(self):
        answer = subprocess.run(
            [str(harness.ROOT / "tools/dev/soak"), "--seconds=45"], capture_output=True, text=True, timeout=500, check=False
        )
        if answer.returncode == WRONG:
            print("\n# runner: no second chance", flush=True)
        self.assertEqual(answer.returncode, 0, answer.stdout[-4000:] + answer.stderr[-2000:])
        self.assertIn("exact profiles", answer.stdout)
        self.assertIn(" killed service", answer.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
