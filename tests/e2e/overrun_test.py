"""--memlog-overrun=sample: a program that allocates faster than the service reads is sampled instead of held up, and its figures lie where
their own standard errors say. Whether anybody waited is told by the client's counters, not by a clock."""
import collections
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import unittest

import harness
from estimates import FIGURES, MOST_DEVIATIONS, deviations, sums_of, truths

PROGRAM = harness.PROGRAMS / "oracle" / "sampled"
OPTIONS = ("--no-page", "--memlog-overrun=sample")
FUNCTIONS = ("keep", "churn", "resize")  # what is smaller than every interval
SEEDS = range(1, 6)
# By chance alone the sums over all seeds lie further off once in 10^6.
SUM_DEVIATIONS = 5
# How far a few samples lie off is itself known from these few alone: none at all say that the error is 0. So many more are counted.
UNSEEN_SAMPLES = 4

PACED = """
import sys, time
print("ready", flush=True)
sys.stdin.readline()
while True:
    blocks = [bytes(600) for _ in range(2000)]
    del blocks
    time.sleep(0.005)
"""


# Blocks of a heap of its own: many at once, which a service that stands still makes it sample; then few, until it records each again; then
# it gives back all.
REPORTED = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
enum { BLOCKS = 100000 };
static uint64_t id_of(int i) { return (uint64_t)(i + 1) << 4; }
int main(void) {
    const uint32_t heap = memlog_heap("own", 0);
    char line[8];
    struct pollfd asked = {.fd = 0, .events = POLLIN};
    memlog_alloc(heap, id_of(BLOCKS), 64);
    puts("ready");
    fflush(stdout);
    if (read(0, line, sizeof(line)) < 1) { return 1; }
    for (int i = 0; i < BLOCKS; i++) { memlog_alloc(heap, id_of(i), 64); }
    puts("taken");
    fflush(stdout);
    while (poll(&asked, 1, 5) == 0) {
        memlog_alloc(heap, id_of(BLOCKS + 1), 64);
        memlog_free(heap, id_of(BLOCKS + 1));
    }
    for (int i = 0; i <= BLOCKS; i++) { memlog_free(heap, id_of(i)); }
    return 0;
}
"""


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def unseen_variance(process, figure, known):
    """What the samples add that a slow machine's longest interval let pass: a share of a function whose truth is known."""
    weight = process["sampling_bytes"]
    if figure.endswith("_blocks"):
        weight *= known[figure] / max(1, known[figure.replace("_blocks", "_bytes")])
    return UNSEEN_SAMPLES * weight**2


class Overrun(harness.Case):
    def start(self, *program):
        process = self.memlog_ready(*program, options=OPTIONS)
        return process, harness.service_of(process.pid)

    def ended(self, process):
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        process.memlog_log.seek(0)
        said = f"{sorted(process.memlog_folder.iterdir())}, {process.memlog_log.read()}"
        return self.exit_report(harness.Run(0, b"", said, process.memlog_folder))

    def held_back(self, seed):
        """(what the program knows, the report) of a run whose service stands still while the program has hundredths of a second, and goes
        on for half of one: by the program's own time, as a machine may give little to both."""
        process, service = self.start(PROGRAM, 150_000, seed)
        (program,) = [child for child in harness.children_of(process.pid) if child != service]

        def hold():
            while (had := harness.ticks_of(program)) is not None:
                with stopped(service):
                    deadline = time.monotonic() + 0.2  # it may end, or have nothing to do
                    while time.monotonic() < deadline and (harness.ticks_of(program) or 0) in (had, had + 1):
                        time.sleep(0.002)
                time.sleep(0.005)

        holder = threading.Thread(target=hold)
        self.go(process)
        holder.start()
        holder.join()
        out = process.stdout.read()
        return truths(out), self.ended(process)

    def assert_nothing_lost(self, process):
        self.assertTrue(process["complete"], process["trouble"])
        self.assertEqual((process["unknown_frees"], process["lost_events"]), (0, 0))
        accounting = process["accounting"]
        self.assertEqual((accounting["waits"], accounting["longest_wait_ns"]), (0, 0))

    def test_estimates_are_unbiased_and_nobody_waits(self):
        sums = collections.Counter()
        longest = 0
        for seed in SEEDS:
            known, report = self.held_back(seed)
            self.assertEqual(len(report["processes"]), len(known))
            for process in report["processes"]:
                self.assert_nothing_lost(process)
                longest = max(longest, process["sampling_bytes"])
                self.assertEqual(process["sampling_bytes"], max(change["bytes"] for change in process["sampling"]))
                estimates = sums_of(process)
                for function in FUNCTIONS:
                    for figure in FIGURES:
                        estimate, variance = estimates[function][figure]
                        truth = known[process["pid"]][function]
                        sums[function, figure, "estimate"] += estimate
                        sums[function, figure, "variance"] += variance + unseen_variance(process, figure, truth)
                        sums[function, figure, "truth"] += truth[figure]
        self.assertGreaterEqual(longest, 512, "it was never sampled")
        for function in FUNCTIONS:
            for figure in FIGURES:
                estimate, variance, truth = (sums[function, figure, part] for part in ("estimate", "variance", "truth"))
                if truth > 0:
                    self.assertLess(abs(deviations(estimate, variance, truth)), SUM_DEVIATIONS, (function, figure, estimate, truth))

    def test_a_service_that_stands_still_is_left_behind_without_a_wait(self):
        process, service = self.start(PROGRAM, 200_000, 1)
        with stopped(service):
            self.go(process)
            first = [process.stdout.readline() for _ in range(6)]  # the parent's figures: its threads are done
        known = truths(b"".join(first) + process.stdout.read())
        report = self.ended(process)
        for entry in report["processes"]:
            self.assert_nothing_lost(entry)
            estimates = sums_of(entry)
            for function in FUNCTIONS:
                estimate, variance = estimates[function]["total_bytes"]
                truth = known[entry["pid"]][function]["total_bytes"]
                self.assertLess(abs(deviations(estimate, variance, truth)), MOST_DEVIATIONS, (function, estimate, truth))
        parent = report["processes"][0]
        self.assertEqual(parent["sampling"][0]["bytes"], 1)
        self.assertGreater(len(parent["sampling"]), 2)
        self.assertGreaterEqual(parent["sampling_bytes"], 1024)
        # Blocks of every interval are exact.
        estimate, variance = sums_of(parent)["large"]["total_bytes"]
        self.assertEqual((estimate, variance), (known[parent["pid"]]["large"]["total_bytes"], 0))
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        text = answer.stdout.decode()
        self.assertRegex(text, r"estimated from samples, one every [0-9.]+ [KM]?i?B on average at times")
        self.assertRegex(text, r"Processes whose sampling interval changed:\n +\d+ sampled")
        self.assertRegex(text, r"from [0-9:.]+Z on every allocation")
        self.assertRegex(text, r"from [0-9:.]+Z on one every 512 B")

    def records_all(self, name):
        answer = subprocess.run([str(harness.MEMLOG), "ps", "--json"], capture_output=True, env=self.environment(), check=False)
        return answer.returncode == 0 and any(
            entry["sampling_bytes"] == 1 and entry["name"] == name for entry in json.loads(answer.stdout)["processes"]
        )

    def test_blocks_that_were_passed_over_are_given_back_when_all_are_recorded_again(self):
        source, program = self.folder / "reported.c", self.folder / "reported"
        source.write_text(REPORTED, encoding="utf-8")
        subprocess.run(["gcc", "-O2", f"-I{harness.ROOT}/client", "-o", str(program), str(source)], check=True)
        process, service = self.start(program)
        with stopped(service):
            self.go(process)
            self.assertEqual(process.stdout.readline(), b"taken\n")
        self.wait_for("every block again", lambda: self.records_all("reported"))
        self.go(process)
        (entry,) = self.ended(process)["processes"]
        self.assert_nothing_lost(entry)
        self.assertGreater(max(change["bytes"] for change in entry["sampling"]), 1)
        (own,) = [heap for heap in entry["heaps"] if heap["name"] == "own"]
        self.assertEqual((own["live_bytes"], own["live_blocks"], own["unknown_frees"]), (0, 0, 0))

    def test_every_allocation_is_recorded_again_when_the_pipe_has_room(self):
        process, service = self.start("/usr/bin/python3", "-c", PACED)
        (program,) = [child for child in harness.children_of(process.pid) if child != service]
        had = harness.ticks_of(program)
        with stopped(service):
            self.go(process)
            # Hundreds of thousands of events, far more than pipe and staging hold.
            self.wait_for("the program's work", lambda: harness.ticks_of(program) >= had + 60)

        self.wait_for("every allocation again", lambda: self.records_all("python3"))
        table = subprocess.run(
            [str(harness.MEMLOG), "ps"], capture_output=True, text=True, env=self.environment(), check=True
        ).stdout
        self.assertRegex(table, r"SAMPLED +NAME\n(.*\n)*.* all +python3")
        os.killpg(os.getpgid(process.pid), signal.SIGINT)
        process.wait(timeout=harness.TIMEOUT)
        report = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))
        (entry,) = report["processes"]
        self.assert_nothing_lost(entry)
        self.assertEqual((entry["sampling"][0]["bytes"], entry["sampling"][-1]["bytes"]), (1, 1))
        self.assertGreater(entry["sampling_bytes"], 1)


if __name__ == "__main__":
    unittest.main()
