"""`memlog top`: the largest processes of a running memlog, as text that no terminal acts upon."""
import subprocess
import unittest

import harness

# Two processes; the larger one has a name that would clear a screen, and ends in half a character.
PROGRAM = r"""
import ctypes, os, pathlib, sys, time
libc = ctypes.CDLL(None)
child = os.fork()
kept = bytearray(9 << 20) if child == 0 else bytearray(3 << 20)
if child == 0:
    libc.prctl(15, b"\x1b[2Jx\xe6\xbc", 0, 0, 0)
pathlib.Path("child" if child == 0 else "parent").touch()
sys.stdin.read()
if child:
    os.wait()
"""


class Top(harness.Case):
    def top(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), "top", *words], env=self.environment(TERM="dumb"), capture_output=True, timeout=harness.TIMEOUT, check=False,
        )

    def test_processes_are_sorted_clean_and_have_rates_from_the_second_look(self):
        process = self.memlog_start("/usr/bin/python3", "-c", PROGRAM, stdin=subprocess.PIPE)
        self.wait_for("both processes", lambda: (self.folder / "child").exists() and (self.folder / "parent").exists())
        # Figures of the host lag behind its programs.
        self.wait_for("their heaps", lambda: b"MiB" in self.top().stdout and len(self.top().stdout.splitlines()) == 3)
        answer = self.top("-n", "2", "-d", "1")
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        text = answer.stdout.decode()  # it is UTF-8
        self.assertTrue(all(letter == "\n" or letter.isprintable() for letter in text), text)
        self.assertIn("?[2Jx", text)
        first, second = (look.splitlines() for look in text.strip("\n").split("\n\n"))
        self.assertEqual([line.split()[0] for line in first[1:]], [line.split()[0] for line in second[1:]])
        self.assertTrue(all(" - " in line for line in first[1:]), first)
        self.assertTrue(all("/s" in look[0] and len(look) == 3 for look in (first, second)), text)
        self.assertTrue(all("+0 B" in line for line in second[1:]), second)
        pid = second[2].split()[0]
        self.assertEqual(len(self.top(pid).stdout.splitlines()), 2)
        self.assertEqual(len(self.top("--filter=nobody has it").stdout.splitlines()), 1)
        process.communicate(timeout=harness.TIMEOUT)
        answer = self.top()
        self.assertEqual((answer.returncode, answer.stdout), (125, b""))
        self.assertIn(b"memlog: ", answer.stderr)


if __name__ == "__main__":
    unittest.main()
