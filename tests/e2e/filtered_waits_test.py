"""A program whose seccomp filter kills for restart_syscall, by which the kernel goes on with a poll that a stop has interrupted: no stop may find
it in a poll of memlog's."""
import fcntl
import os
import pathlib
import signal
import subprocess
import time
import unittest

import attached
import filtered
import harness

ALLOCATES = """
import sys
FILTER
print("ready", flush=True)
sys.stdin.readline()
kept = [[number] for number in range(300000)]
sys.exit(7)
"""
RESTART, POLL = 219, "7 "


def all_but_restart():
    return ((filtered.LOAD, 0, 0, filtered.NR), (filtered.EQUAL, 0, 1, RESTART), (filtered.ANSWER, 0, 0, filtered.KILL),
            (filtered.ANSWER, 0, 0, filtered.ALLOW))


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


class Waits(attached.Case):
    def until_it_polls(self, pid, most_s):
        """Or as long as that: it need not poll."""
        end = time.monotonic() + most_s
        while time.monotonic() < end:
            if any(task.joinpath("syscall").read_text().startswith(POLL) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()):
                return
            time.sleep(0.001)

    def stop_and_go_on(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.wait_for("the stop", lambda: state_of(pid) == "T")
        os.kill(pid, signal.SIGCONT)

    def test_for_a_service_that_stands_still(self):
        text = ALLOCATES.replace("FILTER", filtered.installing(all_but_restart()))
        run = self.memlog_start("/usr/bin/python3", "-c", text, stdin=subprocess.PIPE, env=self.environment(PYTHONMALLOC="malloc"))
        self.assertEqual(run.stdout.readline(), b"ready\n")
        service = harness.service_of(run.pid)
        (pid,) = [child for child in harness.children_of(run.pid) if harness.comm_of(child) == "python3"]
        os.kill(service, signal.SIGSTOP)
        run.stdin.write(b"\n")
        run.stdin.flush()
        self.until_it_polls(pid, 0.5)
        self.stop_and_go_on(pid)
        os.kill(service, signal.SIGCONT)
        run.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(run.returncode, 7)

    @unittest.skipIf(os.geteuid() != 0, "root alone can read a filter")
    def test_for_a_host_that_answers_late_and_a_tracer_that_dies(self):
        target = attached.Target(self, filtered.under(all_but_restart(), [self.program()])).ready()
        with open(f"/proc/{target.pid}/mem", "rb") as memory:
            fcntl.flock(memory, fcntl.LOCK_EX)  # the tracer waits in front of the process
            session = subprocess.Popen(
                [str(harness.MEMLOG), "attach", "-q", "--no-page", "--duration=1", "-o", str(self.folder / "dumps"), str(target.pid)],
                env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            self.addCleanup(session.kill)

            def tracers():
                return [child for child in harness.children_of(session.pid) if harness.comm_of(child) == "memlog-tracer"]

            (tracer,) = self.wait_for("its tracer", tracers)
            session.send_signal(signal.SIGSTOP)
        self.until_it_polls(target.pid, 1)
        os.kill(tracer, signal.SIGKILL)
        self.stop_and_go_on(target.pid)
        session.send_signal(signal.SIGCONT)
        session.wait(harness.TIMEOUT)
        target.tell("warm")
        target.end()


if __name__ == "__main__":
    unittest.main()
