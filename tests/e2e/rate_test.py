"""`memlog rate`: the interval changes while a program runs, its profile goes on, and figures stay unbiased."""
import collections
import json
import os
import subprocess
import unittest

import harness
from estimates import FIGURES, deviations, sums_of, truths

PROGRAM = harness.PROGRAMS / "oracle" / "sampled"
SETTLES = harness.PROGRAMS / "oracle" / "settles"
WAVE_BLOCKS, HELD_BLOCKS, REMEMBERED_BLOCKS = 600_000, 1000, 1 << 18
FUNCTIONS = ("keep", "churn", "resize")
SEEDS = range(1, 4)
SUM_DEVIATIONS = 5  # by chance alone once in 10^6


class Rate(harness.Case):
    def command(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), *map(str, words)], env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT, check=False,
        )

    def rate(self, rate, pid):
        answer = self.command("rate", f"--memlog-sampling-rate={rate}", pid)
        self.assertEqual((answer.returncode, answer.stdout), (0, f"{pid} changed\n"), answer.stderr)

    def row(self):
        answer = self.command("ps", "--json")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)["processes"][0]

    def events(self):
        """That the service has read of the process: a dump is taken when all is."""
        self.assertEqual(self.command("dump").returncode, 0)
        folder = self.dumping
        return self.report(sorted(folder.glob("*.pftrace"))[-1])["processes"][0]["events"]

    def start(self, *options, steps=150_000, seed=1, program=None):
        process = self.memlog_ready(*(program or (PROGRAM, steps, seed)), options=("-q", "--no-page", *options))
        self.dumping = process.memlog_folder
        return process, self.row()["pid"]

    def ended(self, process):
        process.stdin.close()  # an end of file will do for the line that it waits for
        known = truths(process.stdout.read())
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))
        for entry in report["processes"]:
            self.assertTrue(entry["complete"], entry["trouble"])
            self.assertEqual((entry["unknown_frees"], entry["lost_events"]), (0, 0))
        return known, report

    def test_every_change_leaves_figures_unbiased(self):
        sums = collections.Counter()
        for seed in SEEDS:
            process, pid = self.start(seed=seed)
            rates = ["4K", "1", "64K", "300", "1", "2K"]
            self.rate(rates[0], pid)  # before it goes on: it may be through sooner than a command
            process.stdin.write(b"\n")
            process.stdin.flush()
            for rate in rates[1:]:
                if self.command("rate", f"--memlog-sampling-rate={rate}", pid).returncode != 0:
                    break  # it has ended
            known, report = self.ended(process)
            parent = next(entry for entry in report["processes"] if entry["pid"] == pid)
            self.assertEqual(parent["sampling"][0]["bytes"], 1)
            self.assertGreater(len(parent["sampling"]), 1)
            estimates = sums_of(parent)
            self.assertEqual(estimates["early"]["total_bytes"], (known[pid]["early"]["total_bytes"], 0))
            self.assertEqual(estimates["early"]["live_bytes"], (known[pid]["early"]["live_bytes"], 0), "exact blocks stay exact")
            for function in FUNCTIONS:
                for figure in FIGURES:
                    estimate, variance = estimates[function][figure]
                    sums[function, figure, "estimate"] += estimate
                    sums[function, figure, "variance"] += variance
                    sums[function, figure, "truth"] += known[pid][function][figure]
        for function in FUNCTIONS:
            for figure in FIGURES:
                estimate, variance, truth = (sums[function, figure, part] for part in ("estimate", "variance", "truth"))
                if truth > 0:
                    self.assertLess(abs(deviations(estimate, variance, truth)), SUM_DEVIATIONS, (function, figure, estimate, truth))

    def test_a_rate_given_before_anything_happens_holds_for_all_of_it(self):
        process, pid = self.start(steps=20_000)
        self.rate("1M", pid)
        known, report = self.ended(process)
        parent = next(entry for entry in report["processes"] if entry["pid"] == pid)
        self.assertEqual([change["bytes"] for change in parent["sampling"]], [1, 1 << 20])
        self.assertEqual(sums_of(parent)["large"]["total_bytes"], (known[pid]["large"]["total_bytes"], 0))
        self.assertEqual(sums_of(parent)["early"]["live_blocks"], (known[pid]["early"]["live_blocks"], 0))
        # What was passed over is remembered: its frees stay in the process though exactly recorded blocks live.
        blocks = sum(function["total_blocks"] for function in known[pid].values())
        self.assertLess(parent["events"], blocks / 2)

    def test_frees_stay_in_the_process_once_no_exact_block_lives(self):
        process, pid = self.start(program=(SETTLES,))

        def tell(word):
            """The program's answer, and the events that have come by then."""
            process.stdin.write(word)
            process.stdin.flush()
            answer = process.stdout.readline()
            return answer, self.events()

        self.rate("64K", pid)
        before = self.events()
        answer, after = tell(b"w")
        # As long as exact blocks live a free may be one of theirs, unless the client knows that it passed the block over.
        self.assertEqual(answer, b"wave\n")
        self.assertGreater(after - before, WAVE_BLOCKS - REMEMBERED_BLOCKS)
        self.assertEqual(tell(b"f")[0], b"freed\n")

        def settled():
            first = self.events()
            return tell(b"w")[1] - first < WAVE_BLOCKS / 100

        # The host asks the service every two seconds.
        self.wait_for("frees that stay in the process", settled)
        process.stdin.close()
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        (entry,) = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))["processes"]
        self.assertTrue(entry["complete"], entry["trouble"])
        self.assertEqual((entry["unknown_frees"], entry["lost_events"], entry["live_blocks"]), (0, 0, 0))

    def test_ps_tells_the_rate_and_a_profile_goes_on(self):
        process, pid = self.start("--memlog-sampling-rate=64K", steps=2_000)
        before = self.row()
        self.assertEqual(before["sampling_bytes"], 65536)
        self.rate("1", pid)
        known, report = self.ended(process)
        parent = next(entry for entry in report["processes"] if entry["pid"] == pid)
        self.assertEqual([change["bytes"] for change in parent["sampling"]], [65536, 1])
        for function in FUNCTIONS:
            self.assertEqual(sums_of(parent)[function]["total_bytes"], (known[pid][function]["total_bytes"], 0))

    def test_what_cannot_be_changed_is_said(self):
        process, pid = self.start(steps=10)
        for words, said in (
            (["rate", pid], "--memlog-sampling-rate=BYTES"),
            (["rate", "--memlog-stack-mode=native", pid], "unknown option '--memlog-stack-mode'"),
            (["rate", "--memlog-sampling-rate=0", pid], "--memlog-sampling-rate"),
            (["rate", "--memlog-sampling-rate=4K"], "which process"),
        ):
            answer = self.command(*words)
            self.assertEqual(answer.returncode, 2, words)
            self.assertIn(said, answer.stderr)
        answer = self.command("rate", "--memlog-sampling-rate=4K", os.getpid())
        self.assertEqual(answer.returncode, 125)
        self.assertIn(f"{os.getpid()} is not changed: it was not started under this memlog", answer.stderr)
        self.assertEqual(self.command("stop", pid).returncode, 0)
        answer = self.command("rate", "--memlog-sampling-rate=4K", pid)
        self.assertIn("it is not being recorded", answer.stderr)
        process.stdin.close()
        process.wait(timeout=harness.TIMEOUT)


if __name__ == "__main__":
    unittest.main()
