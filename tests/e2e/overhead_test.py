"""`memlog run --overhead`: the sampling interval keeps what memlog costs a process within the promise, figures stay unbiased, and where
the promise cannot be kept that is said. Figures of time are compared with nothing: the machine may do anything meanwhile."""
import collections
import json
import subprocess
import unittest

import harness
from estimates import FIGURES, deviations, sums_of, truths

ORACLE = harness.PROGRAMS / "oracle" / "sampled"
FUNCTIONS = ("keep", "churn", "resize")
SUM_DEVIATIONS = 5  # by chance alone once in 10^6
FINEST, START, LONGEST = 4096, 512 << 10, 64 << 20
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
/* SIZE REST MS [fork|exec|thread]: blocks of SIZE bytes, REST steps of something else between them, for MS of a processor. */
static size_t size;
static int rest;
static clock_t until;
static void *work(void *unused) {
    while (clock() < until) {
        for (int i = 0; i < 100; i++) {
            char *block = malloc(size);
            block[0] = 1;
            free(block);
            for (int k = 0; k < rest; k++) { sink += k; }
        }
    }
    return unused;
}
int main(int count, char **words) {
    size = strtoul(words[1], NULL, 10);
    rest = atoi(words[2]);
    until = atoi(words[3]) * (CLOCKS_PER_SEC / 1000);
    const char *how = count > 4 ? words[4] : "";
    if (strcmp(how, "fork") == 0 && fork() == 0) { work(NULL); return 0; }
    if (strcmp(how, "exec") == 0) { execl("/proc/self/exe", words[0], words[1], words[2], words[3], (char *)NULL); }
    pthread_t other;
    if (strcmp(how, "thread") == 0) { pthread_create(&other, NULL, work, NULL); pthread_join(other, NULL); }
    work(NULL);
    while (wait(NULL) > 0) { }
    return 0;
}
"""


CALM, CALLS, LARGE = (1000, 1_000_000), (24, 0), (200_000, 20_000)


class Overhead(harness.Case):
    def built(self, *flags):
        source, program = self.folder / "busy.c", self.folder / "busy"
        source.write_text(PROGRAM, encoding="utf-8")
        subprocess.run(["gcc", "-O1", "-pthread", *flags, "-o", str(program), str(source)], check=True)
        return program

    def governed(self, *words, promise="1%", options=(), built=None):
        run = self.memlog(built or self.built(), *words, options=("--no-page", f"--overhead={promise}", *options))
        self.assertEqual(run.code, 0, run.err)
        report = self.exit_report(run)
        return report, " ".join(run.err.split())  # lines are wrapped

    def test_a_program_that_allocates_little_is_sampled_at_the_finest(self):
        report, said = self.governed(*CALM, 6000)
        (entry,) = report["processes"]
        overhead = entry["overhead"]
        self.assertEqual(overhead["promised_ppm"], 10000)
        self.assertTrue(overhead["measured"])
        self.assertEqual(overhead["longest_bytes"], START)
        self.assertEqual(overhead["shortest_bytes"], FINEST)
        self.assertEqual(entry["sampling"][0]["bytes"], START)
        # A machine that others use makes it dearer for a while.
        self.assertIn(FINEST, [one["bytes"] for one in entry["sampling"]])
        self.assertLess(entry["sampling"][-1]["bytes"], START)
        self.assertLess(overhead["recording_ppm"] + overhead["passing_ppm"], 10000)
        self.assertIn("1 % promised", said)

    def test_a_floor_is_kept(self):
        report, _ = self.governed(*CALM, 3000, options=("--memlog-sampling-rate=128K",))
        self.assertEqual(report["processes"][0]["overhead"]["shortest_bytes"], 128 << 10)

    def test_calls_alone_break_a_promise_and_it_is_said(self):
        report, said = self.governed(*CALLS, 3000, promise="0.1%")
        (entry,) = report["processes"]
        overhead = entry["overhead"]
        self.assertGreater(overhead["passing_ppm"], 1000)
        self.assertRegex(said, r"cost [\d.]+ %, promised 0\.1 %: its \d+ calls of the allocator in each second of a processor cost")
        self.assertRegex(said, r"overhead [\d.]+ % of the processor time of busy \d+, 0\.1 % promised: its calls of the allocator cost")
        self.assertLessEqual(overhead["longest_bytes"], LONGEST)
        self.assertGreater(entry["total_blocks"], 0)

    def test_recording_that_costs_too_much_is_made_coarser_at_once(self):
        report, _ = self.governed(*LARGE, 3000, promise="0.2%", options=("--memlog-sampling-rate=4K",))
        (entry,) = report["processes"]
        self.assertGreater(entry["overhead"]["longest_bytes"], START)

    def test_children_threads_and_programs_that_follow(self):
        for how, count in (("fork", 2), ("thread", 1), ("exec", 2)):
            with self.subTest(how=how):
                report, _ = self.governed(*CALM, 2500, how)
                entries = [entry for entry in report["processes"] if entry["recorded"]]
                self.assertEqual(len(entries), count)
                for entry in entries:
                    self.assertEqual(entry["overhead"]["promised_ppm"], 10000)
                self.assertTrue(entries[-1]["overhead"]["measured"])
                self.assertGreater(len(entries[-1]["sampling"]), 1)

    def test_a_program_with_the_client_linked_in(self):
        flags = ["-Wl,--whole-archive", f"{harness.OUT}/obj/client/libmemlog.a", "-Wl,--no-whole-archive"]
        report, _ = self.governed(*CALM, 2500, built=self.built(*flags))
        self.assertTrue(report["processes"][0]["overhead"]["measured"])

    def test_a_process_that_is_attached_to(self):
        program = subprocess.Popen([self.built(), *map(str, CALM), "60000"], stdout=subprocess.DEVNULL)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        folder = self.folder / "attached"
        words = [harness.MEMLOG, "attach", "--no-page", "--overhead=1%", "--duration=8s", "-o", folder, program.pid]
        answer = subprocess.run(list(map(str, words)), env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT, check=False)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        (entry,) = self.report(sorted(folder.glob("*.pftrace"))[-1])["processes"]
        self.assertTrue(entry["overhead"]["measured"])
        self.assertEqual(entry["sampling"][0]["bytes"], START)
        self.assertLess(entry["overhead"]["shortest_bytes"], START)

    def join(self, *words, options=(), late=None):
        """A program that was started elsewhere, with what `memlog env` says. `late`: called with its pid while it runs. Its entries in the exit dump."""
        command, dumps = self.memlog_command(["/bin/cat"], ("-q", "--no-page", "--overhead=1%", *options))
        with subprocess.Popen(command, cwd=self.folder, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
            self.wait_for("the run", lambda: self.say("ps").returncode == 0)
            variables = json.loads(self.say("env", "--json").stdout)
            with subprocess.Popen(list(map(str, words)), env=self.environment(**variables), cwd=self.folder) as joined:
                if late is not None:
                    late(joined.pid)
            self.assertEqual(joined.returncode, 0)
            run.stdin.close()
        report = self.report(sorted(dumps.glob("*.exit.pftrace"))[-1])
        return [entry for entry in report["processes"] if entry["name"] != "cat"]

    def say(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), *map(str, words)], env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT, check=False,
        )

    def assert_governed(self, entry, first=(START,)):
        self.assertEqual((entry["overhead"]["promised_ppm"], entry["overhead"]["measured"]), (10000, True), entry["overhead"])
        self.assertIn(entry["sampling"][0]["bytes"], first)
        self.assertLess(entry["overhead"]["shortest_bytes"], START)
        self.assertEqual(entry["complete"], True, entry["trouble"])

    def test_programs_that_join_by_the_environment(self):
        program = self.built()
        for how, count in (("", 1), ("fork", 2), ("exec", 2)):
            with self.subTest(how=how):
                entries = self.join(program, *CALM, 3000, how)
                self.assertEqual(len(entries), count)
                for entry in entries:
                    self.assertTrue(entry["from_startup"])
                    self.assertEqual(entry["overhead"]["promised_ppm"], 10000)
                # A child begins with what its parent has at the fork.
                self.assert_governed(entries[-1], [one["bytes"] for one in entries[0]["sampling"]] if how == "fork" else (START,))

    def test_one_that_joins_where_nobody_is_recorded_and_is_started_late(self):
        def start(pid):
            self.wait_for("it", lambda: pid in [row["pid"] for row in json.loads(self.say("ps", "--json").stdout)["processes"]])
            self.assertEqual(self.say("start", pid).returncode, 0)

        (entry,) = self.join(self.built(), *CALM, 5000, options=("--memlog=manual",), late=start)
        self.assertFalse(entry["from_startup"])
        self.assert_governed(entry)

    def test_a_static_program_says_why_it_has_none(self):
        run = self.memlog(self.built("-static"), *CALM, 10, options=("--no-page", "--overhead=1%"))
        self.assertEqual(run.code, 0)
        self.assertIn("statically linked", run.err)

    def test_exact_recording_cannot_be_promised(self):
        run = self.memlog("/bin/true", options=("--overhead=1%", "--memlog-sampling-rate=1"))
        self.assertEqual(run.code, 2)
        self.assertIn("leave one of them out", run.err)

    def test_ps_tells_the_cost_and_keeps_a_rate_that_was_given(self):
        process = self.memlog_ready(ORACLE, 3_000_000, 1, options=("-q", "--no-page", "--overhead=1%"))
        process.stdin.write(b"\n")
        process.stdin.flush()

        def row():
            answer = subprocess.run(
                [str(harness.MEMLOG), "ps", "--json"], env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT, check=True,
            )
            return json.loads(answer.stdout)["processes"][0]

        self.wait_for("a measure", lambda: "cost_ppm" in row())
        self.assertEqual(row()["promised_ppm"], 10000)
        words = ["rate", "--memlog-sampling-rate=300K", str(row()["pid"])]
        subprocess.run([str(harness.MEMLOG), *words], env=self.environment(), capture_output=True, timeout=harness.TIMEOUT, check=True)
        self.wait_for("the rate", lambda: row()["sampling_bytes"] == 300 << 10)
        process.kill()
        process.wait()

    def test_figures_are_unbiased_while_the_interval_changes(self):
        sums, changes = collections.Counter(), 0
        for seed in range(1, 4):
            options = ("-q", "--no-page", "--overhead=0.5%", "--memlog-sampling-rate=1K")
            run = self.memlog(ORACLE, 1_500_000, seed, options=options, stdin=b"\n")
            self.assertEqual(run.code, 0, run.err)
            known, report = truths(run.out.removeprefix(b"ready\n")), self.exit_report(run)
            for entry in report["processes"]:
                changes += len(entry["sampling"]) - 1
                self.assertTrue(entry["complete"], entry["trouble"])
                estimates = sums_of(entry)
                for function in FUNCTIONS:
                    for figure in FIGURES:
                        estimate, variance = estimates[function][figure]
                        sums[function, figure, "estimate"] += estimate
                        sums[function, figure, "variance"] += variance
                        sums[function, figure, "truth"] += known[entry["pid"]][function][figure]
        self.assertGreater(changes, 0)  # how many, the machine's speed says: it is looked at twice a second
        for function in FUNCTIONS:
            for figure in FIGURES:
                estimate, variance, truth = (sums[function, figure, part] for part in ("estimate", "variance", "truth"))
                if truth > 0:
                    self.assertLess(abs(deviations(estimate, variance, truth)), SUM_DEVIATIONS, (function, figure, estimate, truth))


if __name__ == "__main__":
    unittest.main()
