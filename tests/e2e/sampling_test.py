"""Sampled profiles of a program that knows its own heap: estimates lie where their own standard errors say."""
import pathlib
import subprocess
import unittest

import attached
import harness
from estimates import FIGURES, MOST_DEVIATIONS, deviations, sums_of, truths

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
PROGRAM = harness.PROGRAMS / "oracle" / "sampled"
# Beside that program: a resolver, which the loader runs before memlog has found the next allocator, takes blocks, and memlog's own store has
# them. They are given back when sampling is at work, some of them as the first thing that a forked child does.
EARLY = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
enum { BLOCKS = 90 };
static void *blocks[BLOCKS];
static void give_back(int from, int to) {
    for (int i = from; i < to; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}
static void in_child(void) { give_back(0, BLOCKS / 3); }
static void nothing(void) {}
static __attribute__((used)) void (*resolve(void))(void) {
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = calloc(1, 40);
    }
    return nothing;
}
static void resolved(void) __attribute__((ifunc("resolve")));
__attribute__((constructor)) static void begin(void) {
    Dl_info where;
    resolved();
    if (dladdr(blocks[0], &where) == 0 || strstr(where.dli_fname, "libmemlog") == NULL) {
        abort(); /* nothing would be shown */
    }
    pthread_atfork(NULL, NULL, in_child);
}
__attribute__((destructor)) static void end(void) {
    blocks[BLOCKS - 1] = realloc(blocks[BLOCKS - 1], 80);
    give_back(0, BLOCKS);
}
"""


class Sampling(harness.Case):
    def sampled(self, rate, *options, env=None, program=PROGRAM):
        run = self.memlog(program, options=("-q", "--no-page", f"--memlog-sampling-rate={rate}", *options), env=env)
        self.assertEqual(run.code, 0, run.err)
        return truths(run.out), self.exit_report(run)

    def compare(self, known, report):
        """Every figure that is too far off, as a line; and how well the figures are known."""
        problems, relative = [], []
        self.assertEqual(len(report["processes"]), len(known))
        for process in report["processes"]:
            self.assertTrue(process["complete"], process["trouble"])
            self.assertEqual((process["unknown_frees"], process["lost_events"]), (0, 0))
            sums = sums_of(process)
            for function, truth in known[process["pid"]].items():
                for figure in FIGURES:
                    estimate, variance = sums[function][figure]
                    off = deviations(estimate, variance, truth[figure])
                    if abs(off) > MOST_DEVIATIONS:
                        problems.append(f"{function} {figure}: {estimate}, not {truth[figure]}: {off:.1f} errors off")
                    if truth[figure] > 0:
                        relative.append(variance**0.5 / truth[figure])
        return problems, relative

    def test_estimates_lie_where_their_errors_say(self):
        for rate in ("100", "4K", "64K"):
            with self.subTest(rate=rate):
                known, report = self.sampled(rate)
                problems, _ = self.compare(known, report)
                self.assertEqual(problems, [])

    def test_blocks_that_memlog_gave_itself_before_it_had_begun(self):
        source, program = self.folder / "early.c", self.folder / "sampled"
        source.write_text(EARLY, encoding="utf-8")
        words = ["gcc", *attached.AS_WRITTEN, "-Wl,-z,lazy", "-o", str(program), str(attached.SOURCES / "sampled.c"), str(source)]
        subprocess.run(words, check=True)
        for rate in ("4K", "64K"):
            with self.subTest(rate=rate):
                known, report = self.sampled(rate, program=program)
                self.assertEqual(len(report["processes"]), 2)
                problems, _ = self.compare(known, report)
                self.assertEqual(problems, [])

    def test_a_wrong_weight_would_be_seen(self):
        known, report = self.sampled(100)
        for process in report["processes"]:
            for stack in process["stacks"]:
                for figure in FIGURES:
                    stack[figure] = round(stack[figure] * 1.05)
        problems, _ = self.compare(known, report)
        self.assertGreater(len(problems), 8, problems)

    def test_blocks_of_the_interval_and_more_are_exact(self):
        known, report = self.sampled("1M")
        for process in report["processes"]:
            for figure, (estimate, variance) in sums_of(process)["large"].items():
                self.assertEqual((estimate, variance), (known[process["pid"]]["large"][figure], 0), figure)

    def test_frees_of_what_was_not_sampled_stay_in_the_process(self):
        known, report = self.sampled("1M")
        for process in report["processes"]:
            blocks = sum(truth["total_blocks"] for truth in known[process["pid"]].values())
            bytes_ = sum(truth["total_bytes"] for truth in known[process["pid"]].values())
            # A hit each mebibyte, an allocation and a free at most, with room for chance.
            self.assertLess(process["events"], 4 * (bytes_ / (1 << 20)) + 60, (process["events"], blocks))

    def test_little_is_temporary_where_little_is_freed_next(self):
        _, report = self.sampled("100")
        for process in report["processes"]:
            stacks = [stack for stack in process["stacks"] if "churn" in [frame["function"] for frame in stack["frames"]]]
            temporary = sum(stack["temporary_blocks"] for stack in stacks)
            # One in 2000 places is chosen twice in a row.
            self.assertLess(temporary / sum(stack["total_blocks"] for stack in stacks), 1 / 500)

    def test_the_report_says_how_far_it_may_be_off(self):
        known, report = self.sampled("4K")
        self.assertEqual(report["dump"]["sampling_bytes"], 4096)
        for where in [report["tree"], *report["processes"]]:
            for figure in FIGURES + ("peak_bytes", "peak_blocks"):
                told = figure.replace("live", "left") if where is report["tree"] else figure
                self.assertGreater(where[f"{told}_error"], 0, figure)
        tree = report["tree"]["left_bytes_error"] ** 2
        parts = sum(process["live_bytes_error"] ** 2 for process in report["processes"])
        self.assertAlmostEqual(tree / parts, 1, delta=0.001)
        text = self.text_of(report["dump"]["file"])
        self.assertIn("estimated from samples, one every 4.0 KiB on average", text)
        self.assertRegex(text, r"left +[0-9.]+ MiB ± [0-9.]+ KiB")
        self.assertEqual(len(known), 2)

    def text_of(self, name):
        dump = next(self.folder.rglob(name))
        answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", 40)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.decode()

    def test_an_exact_report_has_no_errors(self):
        known, report = self.sampled("1")
        problems, relative = self.compare(known, report)
        self.assertEqual((problems, max(relative)), ([], 0))
        self.assertNotIn("live_bytes_error", report["tree"])

    def on_allocator(self, library):
        if not library.exists():
            self.fail(f"{library} is not installed")
        known, report = self.sampled("1000", env=self.environment(LD_PRELOAD=str(library)))
        problems, _ = self.compare(known, report)
        self.assertEqual(problems, [])

    def test_on_jemalloc(self):
        self.on_allocator(LIBRARIES / "libjemalloc.so.2")

    def test_on_tcmalloc(self):
        self.on_allocator(LIBRARIES / "libtcmalloc_minimal.so.4")

    def test_on_mimalloc(self):
        self.on_allocator(harness.MIMALLOC)


if __name__ == "__main__":
    unittest.main()
