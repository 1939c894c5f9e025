"""Our side is killed at random moments: the program's output and exit code are as ever, it ends in time, and nothing of ours is left.

What becomes of the profile then is another matter; here nobody looks at it."""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

import harness

# Forks, execs, threads and allocations without a pause, for about half a second.
WORK = """
import os, subprocess, sys, threading, time
def churn(seconds):
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        total += len([bytes(700 + i) for i in range(300)])
    return total
threads = [threading.Thread(target=churn, args=(0.5,)) for _ in range(3)]
for thread in threads:
    thread.start()
end = time.monotonic() + 0.5
while time.monotonic() < end:
    child = os.fork()
    if child == 0:
        kept = [bytes(1000) for _ in range(200)]
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert subprocess.run(["/bin/sh", "-c", "echo from a child; exit 9"], stdout=subprocess.PIPE).returncode == 9
for thread in threads:
    thread.join()
open("done", "w").write("done")
print("done")
sys.exit(5)
"""
PYTHON = "/usr/bin/python3"
ROUNDS = 6


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_preloaded(pid):
    try:
        return "libmemlog.so" in pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def kill(pid):
    with contextlib.suppress(ProcessLookupError):  # it may have ended since it was seen
        os.kill(pid, signal.SIGKILL)


class RandomKills(harness.Case):
    def start(self):
        done = self.folder / "done"
        done.unlink(missing_ok=True)
        return self.memlog_start(PYTHON, "-c", WORK)

    def ours(self, host):
        """The host's own children, not the program's."""
        answer = subprocess.run(["pgrep", "-P", str(host), "memlog"], stdout=subprocess.PIPE, text=True)
        return [int(pid) for pid in answer.stdout.split()]

    def a_moment(self, seed):
        time.sleep(random.Random(seed).uniform(0, 0.6))

    def test_the_service_killed_at_random_moments(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                process = self.start()
                self.a_moment(seed)
                for pid in self.ours(process.pid):
                    kill(pid)
                out, _ = process.communicate(timeout=harness.TIMEOUT)
                self.assertEqual((process.returncode, out), (5, b"done\n"))

    def test_the_host_killed_at_random_moments(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                process = self.start()
                self.wait_for("the program to start", lambda: len(self.ours(process.pid)) == 1 and self.program_of(process))
                program, ours = self.program_of(process), self.ours(process.pid)
                self.a_moment(100 + seed)
                process.kill()
                process.wait()
                self.wait_for("the program to end", lambda pid=program: not is_alive(pid))
                self.assertEqual((self.folder / "done").read_text(), "done")
                self.assertEqual(process.stdout.read(), b"done\n")
                self.wait_for("what is ours to end", lambda pids=ours: not any(map(is_alive, pids)))

    def test_both_killed_at_once(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed):
                process = self.start()
                self.wait_for("the program to start", lambda: self.program_of(process))
                program, ours = self.program_of(process), self.ours(process.pid)
                self.a_moment(200 + seed)
                for pid in (*ours, process.pid):
                    kill(pid)
                process.wait()
                self.wait_for("the program to end", lambda pid=program: not is_alive(pid))
                self.assertEqual((self.folder / "done").read_text(), "done")

    def test_both_killed_leave_a_program_alive_that_dies_of_sigpipe(self):
        # Shells and interpreters may ignore SIGPIPE; this program does not, and writes a full pipe after the other.
        process = self.memlog_start(harness.PROGRAMS / "oracle" / "flood", "400000")
        up = self.wait_for("the program", lambda: list(self.truth_folder.glob("*-up.json")))
        for pid in (*self.ours(process.pid), process.pid):
            kill(pid)
        process.wait()
        (self.truth_folder / "go").touch()
        program = int(up[0].name.partition("-")[0])
        self.wait_for("the program to end", lambda: not is_alive(program))
        self.assertTrue(list(self.truth_folder.glob("*-end.json")), "it came to its end")

    def program_of(self, process):
        """The program itself: the try of its image that comes before ends with the host, as it should."""
        answer = subprocess.run(["pgrep", "-P", str(process.pid), "python3"], stdout=subprocess.PIPE, text=True)
        return next((int(pid) for pid in answer.stdout.split() if is_preloaded(pid)), None)


if __name__ == "__main__":
    unittest.main(verbosity=2)
