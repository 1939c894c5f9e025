"""Somebody sets the time of day while a program is profiled, forth and back: nothing hangs, nothing is missing, and all times of one
dump are told by one clock. The clock is a library's, loaded into memlog, as setting the machine's would disturb others."""
import datetime
import subprocess
import sys
import unittest

import harness

PYTHON = "/usr/bin/python3"
STEP_S = 3600
SLACK_S = 60

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
/* CLOCK_REALTIME is set by STEP seconds, a third of a second after it was first asked for. */
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    static struct timespec first;
    if (real == NULL) {
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    }
    int answer = real(id, now);
    if (id == CLOCK_REALTIME && answer == 0) {
        struct timespec monotonic;
        (void)real(CLOCK_MONOTONIC, &monotonic);
        if (first.tv_sec == 0) {
            first = monotonic;
        }
        long long past = (monotonic.tv_sec - first.tv_sec) * 1000000000LL + monotonic.tv_nsec - first.tv_nsec;
        now->tv_sec += past > 333000000 ? STEP : 0;
    }
    return answer;
}
"""

PROGRAM = """
import time
time.sleep(1)
kept = [bytearray(1000) for _ in range(1000)]
del kept
print("through", flush=True)
raise SystemExit(5)
"""


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class ClockStep(harness.Case):
    def step(self, seconds):
        source, library = self.folder / "shim.c", self.folder / "shim.so"
        source.write_text(SHIM)
        subprocess.run(["gcc", "-shared", "-fPIC", f"-DSTEP=({seconds})", "-o", library, source, "-ldl"], check=True)
        environment = {**self.environment(), "LD_PRELOAD": str(library)}
        words, folder = self.memlog_command([PYTHON, "-c", PROGRAM], ("-q", "--no-page"))
        before = datetime.datetime.now(datetime.timezone.utc).timestamp()
        answer = subprocess.run(
            words, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.TIMEOUT, check=False
        )
        after = datetime.datetime.now(datetime.timezone.utc).timestamp()
        self.assertEqual((answer.returncode, answer.stdout), (5, b"through\n"), answer.stderr)
        report = self.exit_report(harness.Run(5, b"", answer.stderr, folder))
        (entry,) = report["processes"]
        self.assertTrue(entry["complete"], entry["trouble"])
        dumped = seconds_of(report["dump"]["time"])
        self.assertLess(abs(dumped - (after + seconds)), SLACK_S, "the new time of day")
        times = [seconds_of(text) for text in (entry["start_time"], entry["peak_time"], entry["end_time"])]
        times.append(dumped + 1)  # told in whole seconds
        self.assertEqual(times, sorted(times), "one clock for all of them")
        self.assertLess(times[-1] - times[0], after - before + 2)

    def test_forth(self):
        self.step(STEP_S)

    def test_back(self):
        self.step(-STEP_S)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
