"""How a program ends under memlog: nobody is waited for, though host and service stand still, and what it asks of the kernel behind
its last word is what it asks without memlog and a few calls that cannot wait."""
import collections
import os
import pathlib
import re
import shutil
import signal
import unittest

import harness

PYTHON = "/usr/bin/python3"
GROWER = harness.PROGRAMS / "oracle" / "grower"
MARK = "the end begins"
# Allocations of four threads that are gone (who was joined may still be on its way out, and meet the main thread at Python's own lock),
# and many that are freed while Python ends.
SCRIPT = f"""
import os, sys, threading, time
kept = [str(i) * 3 for i in range(20000)]
def work():
    return [bytes(100 + i) for i in range(1000)]
for _ in range(4):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
if len(sys.argv) > 1:
    open(sys.argv[1] + "/there", "w").close()
    while not os.path.exists(sys.argv[1] + "/go"):
        time.sleep(.01)
time.sleep(.1)
os.write(1, b"{MARK}\\n")
"""
# What tells of an end: is the pipe ours, is this still the process that began, an event; can the loader's list be read (a call that
# changes nothing); which thread unmaps; and how much heap goes back first.
OURS = {"getpid": 2, "gettid": 8, "fstat": 4, "pwritev2": 4, "rt_sigprocmask": 8, "brk": 4, "munmap": 4, "madvise": 4}
CLOCK = pathlib.Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def state_of(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2]


class Stopped(harness.Case):
    def assert_ends(self, *program):
        process = self.memlog_start(*program)
        self.wait_for("the start", (self.folder / "there").exists)
        service = harness.service_of(process.pid)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (pid,) = [int(child) for child in children if int(child) != service]
        stopped = (process.pid, service)
        try:
            for one in stopped:
                os.kill(one, signal.SIGSTOP)
            for one in stopped:
                self.wait_for("it to stand still", lambda one=one: state_of(one) == "T")
            (self.folder / "go").touch()
            # Its parent stands still, so what has ended stays.
            self.wait_for("its end", lambda: state_of(pid) == "Z")
            self.assertEqual([state_of(one) for one in stopped], ["T", "T"])
        finally:
            for one in stopped:
                os.kill(one, signal.SIGCONT)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        report = self.report(dump)
        self.assertTrue(report["dump"]["complete"], report["dump"])

    def test_a_program_ends_while_host_and_service_stand_still(self):
        self.assert_ends(GROWER, "-", "guilty=1000000", f"done={self.folder}/there", f"wait={self.folder}/go", "drop")

    def test_so_does_one_that_frees_much_at_its_end(self):
        self.assert_ends(PYTHON, "-c", SCRIPT, self.folder)


@unittest.skipUnless(shutil.which("strace"), "strace is not installed (tools/dev/setup test)")
class Calls(harness.Case):
    def calls_behind(self, trace):
        """How often the thread that left the mark made each call behind it; a thread that was joined may still be on its way out."""
        lines = trace.read_text(errors="replace").splitlines()
        last = max(i for i, line in enumerate(lines) if "write(1, " in line and MARK in line)
        (thread, _) = lines[last].split(maxsplit=1)
        found = (re.match(rf"{thread} +(\w+)\(", line) for line in lines[last + 1:])
        return collections.Counter(match[1] for match in found if match)

    def test_what_is_asked_at_the_end_is_known_and_cannot_wait(self):
        calls = {}
        for way in ("bare", "memlog"):
            words = ("strace", "-f", "-o", self.folder / way, PYTHON, "-c", SCRIPT)
            if way == "bare":
                answer = harness.run_words([*map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
                self.assertEqual(answer.returncode, 0, answer.stderr)
            else:
                run = self.memlog(*words)
                self.assertEqual(run.code, 0, run.err)
            calls[way] = self.calls_behind(self.folder / way)
        self.assertEqual(calls["bare"]["exit_group"], 1)
        more = calls["memlog"] - calls["bare"]
        if CLOCK.read_text().strip() != "tsc":
            del more["clock_gettime"]  # each event is stamped by it where the kernel does not trust the processor's counter
        self.assertTrue(all(count <= OURS.get(call, 0) for call, count in more.items()), f"{more} more than {calls['bare']}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
