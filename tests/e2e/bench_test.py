"""tools/bench from outside: bench-meter tells the truth, and a short run gives a record and a table. No time is judged."""
import json
import subprocess
import unittest

import harness

METER = harness.OUT / "bench-meter"


class Bench(harness.Case):
    def meter(self, *words):
        path = self.folder / "meter.json"
        answer = subprocess.run(
            [str(METER), str(path), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=harness.TIMEOUT, check=False,
        )
        return answer, json.loads(path.read_text()) if path.exists() else None

    def test_the_meter_hands_exit_codes_through(self):
        answer, figures = self.meter("--", "sh", "-c", "exit 7")
        self.assertEqual((answer.returncode, figures["exit_code"], figures["signal"]), (7, 7, 0))
        answer, figures = self.meter("--", "sh", "-c", "kill -9 $$")
        self.assertEqual((answer.returncode, figures["exit_code"], figures["signal"]), (137, -1, 9))

    def test_the_meters_settings_reach_the_program_alone_and_replace(self):
        answer, _ = self.meter("HOME=/nowhere", "BENCH=1", "--", "sh", "-c", "echo $HOME $BENCH; env | grep -c ^HOME=")
        self.assertEqual(answer.stdout, b"/nowhere 1\n1\n")

    def test_the_meter_counts_the_programs_memory_and_cpu(self):
        _, small = self.meter("--", str(harness.OUT / "bench-live"), "1")
        _, large = self.meter("--", str(harness.OUT / "bench-live"), "1000000")
        # A block of 8 bytes takes 32 of glibc's.
        self.assertGreater(large["peak_rss_bytes"] - small["peak_rss_bytes"], 30_000_000)
        self.assertGreater(large["own_bytes"] - small["own_bytes"], 30_000_000)
        self.assertLess(large["own_bytes"], large["peak_rss_bytes"])
        self.assertGreater(large["user_s"] + large["system_s"], 0)

    def test_a_program_that_is_stopped_and_goes_on_is_measured_to_its_end(self):
        script = "(while kill -CONT $$ 2>/dev/null; do sleep 0.1; done) & kill -STOP $$; kill -STOP $$; exit 3"
        answer, figures = self.meter("--", "sh", "-c", script)
        self.assertEqual((answer.returncode, figures["exit_code"], figures["signal"]), (3, 3, 0))
        self.assertGreater(figures["own_bytes"], 0)

    def test_a_program_that_does_not_start_is_the_meters_failure(self):
        answer, figures = self.meter("--", "/nowhere/at/all")
        self.assertEqual((answer.returncode, figures), (125, None))
        self.assertIn(b"/nowhere/at/all", answer.stderr)

    def test_a_short_run_leaves_a_record_and_prints_its_table(self):
        path = self.folder / "bench.json"
        words = [str(harness.ROOT / "tools/bench/main.py"), "--quick", "--repeat=1", "--programs=tight,sqlite3,latency-steady"]
        words += ["--configurations=nothing,memlog-exact", f"--json={path}"]
        for _ in range(harness.OVERRUN_TRIES):
            answer = subprocess.run(
                ["/usr/bin/python3", *words], env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                timeout=2 * harness.TIMEOUT, check=False,
            )
            self.assertEqual(answer.returncode, 0, answer.stderr)
            runs = {(run["program"], run["configuration"]): run for run in json.loads(path.read_text())["runs"]}
            self.assertEqual({run["ended"] for run in runs.values()}, {"ok"}, runs)
            tight = runs["tight", "memlog-exact"]
            if tight["complete"]:
                break  # else the machine has stood still for longer than a full pipe is waited for
        # 2 million pairs, and what the C library does of its own.
        self.assertAlmostEqual(tight["events"], 4_000_000, delta=100)
        self.assertEqual(tight["lost_events"], 0)
        # An event is a byte of kind and one of time at least.
        self.assertGreater(tight["stream_bytes"], 2 * tight["events"])
        self.assertGreater(tight["stack_nodes"], 0)
        self.assertTrue(tight["complete"])
        self.assertGreater(tight["recorder_cpu_s"], 0)
        self.assertGreater(tight["recorder_peak_rss_bytes"], 1_000_000)
        latency = runs["latency-steady", "memlog-exact"]["latency"]
        self.assertEqual(sum(count for _, count in latency["malloc"]["buckets"]), 200_000)
        self.assertIn("| memlog-exact (small)", answer.stdout)
        recorded = runs["sqlite3", "memlog-exact"]
        replayed = runs["sqlite3", "memlog-replay"]["replay"]
        # The same program once more: what its environment adds, or takes away.
        self.assertAlmostEqual(replayed["events"], recorded["events"], delta=recorded["events"] / 100)
        # A slot takes 12 bytes, what is counted of a cell 88.
        self.assertGreater(replayed["bytes_a_block"], 12)
        self.assertGreater(replayed["bytes_a_cell"], 88)
        self.assertGreater(runs["random", "memlog-replay"]["replay"]["live_blocks"], 90_000)
        self.assertRegex(answer.stdout, r"\n\| sqlite3 +\| [0-9.]+ M +\| ")
        shown = subprocess.run(
            ["/usr/bin/python3", words[0], "--show", str(path)], stdout=subprocess.PIPE, text=True, timeout=harness.TIMEOUT, check=False,
        )
        self.assertEqual(shown.stdout, answer.stdout)


if __name__ == "__main__":
    unittest.main()
