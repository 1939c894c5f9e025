/* By hand: run any program under the client alone and print what it streamed. out/capture_tool
 * PROGRAM [ARGS...] */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/capture.h"

static struct capture capture;

static char **program;

/* The capture asserts, and Check wants assertions inside a test. */
START_TEST(capture_the_program) {
    const char *check = getenv("UNWIND_CHECK");
    const struct capture_options options = {
        .unwind_check = check == NULL ? 0 : (uint32_t)strtoul(check, NULL, 10)};
    capture_run(&capture, &options, program);
    for (size_t i = 0; i < capture.processes_count; i++) {
        const struct captured_process *process = &capture.processes[i];
        const struct captured_sums sums = capture_sums(process);
        (void)fprintf(
            stderr,
            "%d%s: %zu records, %.2f bytes each, total %" PRIu64 " blocks %" PRIu64
            " bytes, live %" PRIu64 " blocks %" PRIu64 " bytes, unknown frees %" PRIu64
            ", double %" PRIu64 ", lanes %u, lost %" PRIu64 ", cut %" PRIu64 ", broken %" PRIu64
            ", checked %" PRIu64 ", differed %" PRIu64 "\n",
            process->pid,
            process->forked ? " (forked)" : "",
            process->events_count,
            (double)process->bytes_count / (double)(process->events_count + 1),
            sums.total_blocks,
            sums.total_bytes,
            sums.live_blocks,
            sums.live_bytes,
            sums.unknown_frees,
            sums.double_allocs,
            process->lanes_used,
            process->lost_events,
            process->header.truncated_stacks,
            process->header.broken_stacks,
            process->header.unwind_checked,
            process->header.unwind_differed
        );
    }
    if (capture.not_profiled_count > 0) {
        (void)fprintf(stderr, "not profiled: %s\n", capture.not_profiled);
    }
}
END_TEST

int main(int count, char **arguments) {
    if (count < 2) {
        (void)fprintf(stderr, "usage: capture_tool /path/to/PROGRAM [ARGS...]\n");
        return 2;
    }
    program = arguments + 1;
    Suite *suite = suite_create("capture");
    TCase *cases = tcase_create("capture");
    tcase_add_test(cases, capture_the_program);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_SILENT);
    const int failed = srunner_ntests_failed(runner);
    if (failed > 0) {
        srunner_print(runner, CK_NORMAL);
    }
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
