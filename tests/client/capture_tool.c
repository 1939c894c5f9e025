/* By hand: run any program under the client alone and print what it streamed, or keep it:
 * out/capture_tool [--streams=FOLDER] [--attach] [--entries] [--sampling=BYTES] [--measures]
 * PROGRAM [ARGS...] writes a file FOLDER/PID.stream for each process (a later one of the same pid:
 * PID.2.stream), for out/replay and out/stream_tool.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/capture.h"

static struct capture capture;

static char **program;
static const char *streams_folder; /* NULL: print */
static bool attaches;
static bool hooks_entries;
static uint64_t sampling_bytes; /* 0: each block is recorded */
static bool measures_cost;

static void write_stream(const struct captured_process *process) {
    char path[4200];
    FILE *out = NULL;
    for (int image = 1; out == NULL && image <= CAPTURE_PROCESSES_MAX; image++) {
        char number[16] = "";
        if (image > 1) {
            (void)snprintf(number, sizeof(number), ".%d", image);
        }
        (void
        )snprintf(path, sizeof(path), "%s/%d%s.stream", streams_folder, (int)process->pid, number);
        out = fopen(path, "wbx"); /* never over another one */
    }
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(process->bytes, 1, process->bytes_count, out), process->bytes_count);
    ck_assert_int_eq(fclose(out), 0);
    (void)fprintf(
        stderr,
        "%s: %zu bytes, lanes %u, lost %" PRIu64 "\n",
        path,
        process->bytes_count,
        process->lanes_used,
        process->lost_events
    );
}

static void print_sums(const struct captured_process *process) {
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

/* The capture asserts, and Check wants assertions inside a test. */
START_TEST(capture_the_program) {
    const char *check = getenv("UNWIND_CHECK");
    const struct capture_options options = {
        .unwind_check = check == NULL ? 0 : (uint32_t)strtoul(check, NULL, 10),
        .no_events = streams_folder != NULL,
        .attach = attaches,
        .entries = hooks_entries,
        .sampling_bytes = sampling_bytes,
        .measures_cost = measures_cost};
    capture_run(&capture, &options, program);
    for (size_t i = 0; i < capture.processes_count; i++) {
        if (streams_folder != NULL) {
            write_stream(&capture.processes[i]);
        } else {
            print_sums(&capture.processes[i]);
        }
    }
    if (attaches) {
        (void)fprintf(
            stderr, "attached: %u functions %s\n", capture.attached_functions, capture.trouble
        );
    }
    if (capture.not_profiled_count > 0) {
        (void)fprintf(stderr, "not profiled: %s\n", capture.not_profiled);
    }
}
END_TEST

static const char streams[] = "--streams=";
static const char sampling[] = "--sampling=";

/* False: it is none, but the program. */
static bool take_option(const char *given) {
    if (strncmp(given, streams, sizeof(streams) - 1) == 0) {
        streams_folder = given + sizeof(streams) - 1;
        return true;
    }
    if (strncmp(given, sampling, sizeof(sampling) - 1) == 0) {
        sampling_bytes = strtoul(given + sizeof(sampling) - 1, NULL, 10);
        return true;
    }
    attaches = attaches || strcmp(given, "--attach") == 0;
    hooks_entries = hooks_entries || strcmp(given, "--entries") == 0;
    measures_cost = measures_cost || strcmp(given, "--measures") == 0;
    return strcmp(given, "--attach") == 0 || strcmp(given, "--entries") == 0 ||
           strcmp(given, "--measures") == 0;
}

int main(int count, char **arguments) {
    while (count > 1 && take_option(arguments[1])) {
        arguments++;
        count--;
    }
    if (count < 2) {
        (void)fprintf(
            stderr,
            "usage: capture_tool [--streams=FOLDER] [--attach] [--entries] [--sampling=BYTES] "
            "/path/to/PROGRAM [ARGS...]\n"
        );
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
