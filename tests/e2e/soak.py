#!/usr/bin/env python3
"""By hand: a stress of any length, on eight threads, that must end to the byte.

    tests/e2e/soak.py [--events=N]    (default: a billion; MEMLOG_TEST_OUT as the tests take it)

Runs tests/oracle/threads under memlog for about N events, holds the report against what the program wrote down, and says how many
events there were, how long it took and what was lost. Exit code 1 if a single figure differs, or an event is missing.
"""
import sys
import time
import unittest

import oracle_test

THREADS = 8
# Of eight rounds six make a block and free one in the end, and one moves a block that is there most of the time.
EVENTS_A_ROUND = 1.65
# Of a loaded core; a hang is no wait for ever.
SLOWEST_EVENTS_A_SECOND = 300_000

events_wanted = 1_000_000_000


class Soak(oracle_test.Oracle):
    def test_it_ends_to_the_byte(self):
        rounds = int(events_wanted / EVENTS_A_ROUND / THREADS) + 1
        begin = time.monotonic()
        run = self.memlog(
            self.program("threads"), rounds, timeout=120 + events_wanted / SLOWEST_EVENTS_A_SECOND
        )
        took = time.monotonic() - begin
        self.assertEqual(run.code, 0, run.err)
        report = self.exit_report(run)
        written = oracle_test.truth.load(self.truth_folder)
        self.assertEqual(len(written), 1)
        self.assert_equal_to_truth(report, written)
        process = report["processes"][0]
        print(
            f'{process["events"]:,} events in {took:.0f} s ({process["events"] / took / 1e6:.2f} million a second, target and '
            f'service together): lost {process["lost_events"]}, late {process["late_events"]}, '
            f'unknown frees {process["unknown_frees"]}'
        )
        self.assertGreaterEqual(process["events"], events_wanted * 0.95)
        self.assertEqual(process["lost_events"], 0)


if __name__ == "__main__":
    for word in sys.argv[1:]:
        if not word.startswith("--events="):
            sys.exit(__doc__)
        events_wanted = int(float(word.removeprefix("--events=")))
    unittest.main(argv=sys.argv[:1])
