"""memlog-service dies and another one takes over: what the program notices (nothing), what the reports say."""
import datetime
import os
import pathlib
import random
import signal
import time
import unittest

import harness
import imported

PYTHON = "/usr/bin/python3"

# Phases at the test's word: in phase N it allocates 100 blocks of BASE + N bytes and frees half of them, in the process
# itself and in a child; blocks of the phase before are freed too.
PHASES = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
kept = []
def phase(number):
    global kept
    old, kept = kept, [libc.malloc(500000 + number) for _ in range(100)]
    for block in old + kept[50:]:
        libc.free(block)
    kept = kept[:50]
number = 0
while True:
    phase(number)
    if os.fork() == 0:
        libc.malloc(700000 + number)
        os._exit(0)
    os.wait()
    open(f"done{number}", "w").close()
    number += 1
    while not os.path.exists(f"go{number}"):
        if os.path.exists("end"):
            print("finished", number)
            sys.exit(7)
        time.sleep(0.002)
"""


def sized(process, base):
    """(live bytes, total bytes) of the stacks whose blocks are of the phases' sizes from that base on."""
    live = total = 0
    for stack in process["stacks"]:
        if stack["total_blocks"] > 0 and base <= stack["total_bytes"] / stack["total_blocks"] < base + 100:
            live += stack["live_bytes"]
            total += stack["total_bytes"]
    return live, total


class Restart(harness.Case):
    def begin(self, options=("--no-page",)):
        process = self.memlog_start(PYTHON, "-c", PHASES, options=options)
        self.wait_for("the first phase", lambda: (self.folder / "done0").exists())
        return process

    def services(self, process):
        found = []
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                text = stat.read_text()
            except OSError:
                continue
            fields = text[text.rindex(")") + 2:].split()
            if "(memlog-service)" in text and int(fields[1]) == process.pid and fields[0] != "Z":
                found.append(int(text.split()[0]))
        return found

    def kill_service(self, process, number=signal.SIGKILL):
        (old,) = self.wait_for("a service", lambda: self.services(process))
        killed = time.time()
        os.kill(old, number)
        self.wait_for("another service", lambda: set(self.services(process)) - {old})
        return killed

    def told(self, process, count):
        """Waits until the host has said so often that a successor serves."""
        def says():
            process.memlog_log.flush()
            return (self.folder / f"stderr{self.runs}").read_text().count("another one has taken over") >= count
        self.wait_for("the successor", says)

    def phase(self, number):
        (self.folder / f"go{number}").touch()
        self.wait_for(f"phase {number}", lambda: (self.folder / f"done{number}").exists())

    def finish(self, process):
        (self.folder / "end").touch()
        out, _ = process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(process.returncode, 7)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        return out, self.report(dump)

    def test_the_next_service_records_what_comes_and_the_gap_says_what_did_not(self):
        process = self.begin()
        killed = self.kill_service(process)
        self.told(process, 1)
        self.phase(1)
        self.phase(2)
        out, report = self.finish(process)
        self.assertEqual(out, b"finished 3\n")
        self.assertFalse(report["dump"]["complete"])
        lost, unseen = report["dump"]["gaps"]
        self.assertIn("what memlog-service had recorded is gone with it", lost["reason"])
        self.assertEqual(unseen["reason"], "memlog-service was killed by signal 9: nothing was seen")
        seconds = [datetime.datetime.fromisoformat(gap[end].replace("Z", "+00:00")).timestamp()
                   for gap in (lost, unseen) for end in ("from", "to")]
        self.assertEqual(seconds, sorted(seconds))
        self.assertLess(seconds[0], killed)
        self.assertLess(killed - 0.1, seconds[2] + 1)
        self.assertLess(seconds[3] - seconds[2], 60)  # of a loaded machine
        root = report["processes"][0]
        self.assertFalse(root["from_startup"])
        self.assertFalse(root["complete"])
        self.assertEqual(sized(root, 500000), (50 * 500002, 100 * 500001 + 100 * 500002))
        self.assertGreaterEqual(root["unknown_frees"], 50)  # phase 0's kept blocks
        # For Perfetto's tools it is a loss of data, of those that lived then.
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        self.assertEqual(imported.Imported(dump.read_bytes()).stats["heapprofd_buffer_overran", root["pid"]], 1)
        children = [other for other in report["processes"] if other["parent_id"] == root["id"]]
        self.assertEqual(len(children), 2)
        for number, child in enumerate(children, 1):
            self.assertIn("what it inherited is not all known", child["trouble"])
            self.assertFalse(child["complete"])
            self.assertTrue(child["from_startup"])
            self.assertEqual(sized(child, 700000), (700000 + number,) * 2)

    def test_who_was_forked_while_there_was_no_service_by_one_that_ended_is_not_complete(self):
        process = self.memlog_start(PYTHON, "-c", HANDS_DOWN, options=("--no-page",))
        self.wait_for("the parent", lambda: (self.folder / "done0").exists())
        # The more have died, the longer the next one is waited for.
        for count in range(1, 5):
            self.kill_service(process)
            self.told(process, count)
        (old,) = self.services(process)
        os.kill(old, signal.SIGKILL)
        self.wait_for("no service", lambda: not self.services(process))
        (self.folder / "fork").touch()
        self.wait_for("the heir", lambda: (self.folder / "orphaned").exists() and (self.folder / "heir").exists())
        self.told(process, 5)
        _, report = self.finish(process)
        heir = int((self.folder / "heir").read_text())
        for entry in report["processes"]:
            if entry["pid"] == heir:
                self.assertFalse(entry["complete"])
                self.assertRegex(entry["trouble"], "what it inherited is not (all )?known: its parent's profile")
                break
        else:
            self.fail(f"{heir} is in no profile: {[entry['pid'] for entry in report['processes']]}")

    def test_dumps_taken_before_stay_and_are_whole(self):
        process = self.begin(options=("--no-page", "--dump-signal=USR1"))
        process.send_signal(signal.SIGUSR1)
        (dump,) = self.wait_for("the dump", lambda: list(process.memlog_folder.glob("*.signal.pftrace")))
        self.kill_service(process)
        self.told(process, 1)
        self.finish(process)
        report = self.report(dump)
        self.assertTrue(report["dump"]["complete"])
        self.assertEqual(sized(report["processes"][0], 500000), (50 * 500000, 100 * 500000))

    def test_services_that_die_in_a_row_are_each_replaced(self):
        process = self.begin()
        for count, number in enumerate((signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT), 1):
            self.kill_service(process, number)
            self.told(process, count)
            self.phase(count)
        _, report = self.finish(process)
        root = report["processes"][0]
        self.assertEqual(sized(root, 500000), (50 * 500003, 100 * 500003))
        self.assertEqual(len(report["dump"]["gaps"]), 6)

    def test_a_dump_that_a_service_dies_over_is_written_by_the_next(self):
        process = self.begin(options=("--no-page", "--dump-signal=USR1"))
        (service,) = self.services(process)
        os.kill(service, signal.SIGSTOP)
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.2)
        os.kill(service, signal.SIGKILL)
        (dump,) = self.wait_for("the dump", lambda: list(process.memlog_folder.glob("*.signal.pftrace")))
        self.finish(process)
        self.assertTrue(self.report(dump)["dump"]["gaps"])

    def test_a_service_killed_at_the_very_end_leaves_a_dump_that_says_so(self):
        process = self.begin()
        (service,) = self.services(process)
        os.kill(service, signal.SIGSTOP)
        (self.folder / "end").touch()
        time.sleep(0.5)
        os.kill(service, signal.SIGKILL)
        _, report = self.finish(process)
        self.assertFalse(report["dump"]["complete"])
        self.assertTrue(report["dump"]["gaps"])


# A child that forks one of its own, at the test's word, and ends; that one ends at another word.
HANDS_DOWN = """
import os, sys, time
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.001)
if os.fork() == 0:
    kept = [bytes(5000) for _ in range(100)]
    open("done0", "w").close()
    wait_for("fork")
    if os.fork() == 0:
        open("heir", "w").write(str(os.getpid()))
        wait_for("end")
    os._exit(0)
os.wait()
open("orphaned", "w").close()
wait_for("end")
time.sleep(0.3)
sys.exit(7)
"""

# Allocates without a pause; each of three threads frees what another has allocated.
BUSY = """
import threading
def churn():
    while True:
        [bytes(700 + i) for i in range(300)]
for _ in range(2):
    threading.Thread(target=churn, daemon=True).start()
open("busy", "w").write(str(__import__("os").getpid()))
churn()
"""


class Frozen(harness.Case):
    def test_a_frozen_process_holds_no_dump_up_and_no_other_process(self):
        busy = str(self.folder / "busy.py")
        pathlib.Path(busy).write_text(BUSY)
        process = self.memlog_start(
            PYTHON, "-c", f"import subprocess; subprocess.Popen(['{PYTHON}', '{busy}'], stdout=subprocess.DEVNULL)\n" + PHASES,
            options=("-q", "--no-page", "--end-with-root", "--dump-signal=USR1"),
        )
        self.wait_for("the phases", lambda: (self.folder / "done0").exists())
        frozen = int(self.wait_for("the busy one", lambda: (self.folder / "busy").exists() and (self.folder / "busy").read_text()))
        self.addCleanup(os.kill, frozen, signal.SIGKILL)
        dice = random.Random(1)
        for number in range(1, 9):
            time.sleep(dice.uniform(0, 0.02))
            os.kill(frozen, signal.SIGSTOP)
            process.send_signal(signal.SIGUSR1)
            dump = process.memlog_folder / f"{number:04}.signal.pftrace"
            self.wait_for("the dump", dump.exists, 60)  # the limit is 10 s, and the machine may be loaded
            report = self.report(dump)
            other = next(entry for entry in report["processes"] if entry["pid"] != frozen and not entry["signal"]
                         and sized(entry, 500000)[1])
            self.assertTrue(other["complete"], other["trouble"])
            self.assertEqual(sized(other, 500000), (50 * 500000, 100 * 500000))
            os.kill(frozen, signal.SIGCONT)
        (self.folder / "end").touch()
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(process.returncode, 7)


if __name__ == "__main__":
    unittest.main(verbosity=2)
