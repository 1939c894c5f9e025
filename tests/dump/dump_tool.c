/* For use by hand, without host and sandbox. dump_tool FILE PROGRAM [ARGS...] runs the program
 * under the client, feeds its stream to the pipeline and writes the dump. PROGRAM is a path. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/dump/writer.h"
#include "service/session/client.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/snapshot/snapshot.h"
#include "tests/client/capture.h"
#include "tests/service/describe.h"

static struct capture capture;
static char **words; /* FILE PROGRAM [ARGS...] */

static struct memlog_service_moment moment(void) {
    struct timespec now;
    struct timespec day;

    clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_REALTIME, &day);
    return (struct memlog_service_moment){
        .ticks = __builtin_ia32_rdtsc(),
        .monotonic_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec,
        .realtime_ns = (uint64_t)day.tv_sec * 1000000000U + (uint64_t)day.tv_nsec,
        .boottime_ns = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec,
    };
}

static void replay(struct ml_session *session, struct ml_timestamp start, struct ml_timestamp end) {
    for (size_t i = 0; i < capture.processes_count; i++) {
        const struct captured_process *process = &capture.processes[i];
        const struct ml_client_setup setup = {
            .id = (uint32_t)i + 1,
            .parent_id = process->forked ? 1 : 0,
            .pid = (uint32_t)process->pid,
            .from_startup = true,
            .forked = process->forked,
            .fork_serial = process->fork_serial,
            .sampling_bytes = 1,
            .start = start,
        };
        const struct ml_client_end ended = {.state = 1, .end = end};
        struct ml_client *client = NULL;

        ck_assert_int_eq(ml_session_add(session, &setup, &client), ML_OK);
        ck_assert_int_eq(ml_client_feed(client, process->bytes, process->bytes_count), ML_OK);
        describe(client, words[1], words[1], "");
        ck_assert_int_eq(ml_client_ended(client, &ended), ML_OK);
    }
}

START_TEST(dump_the_program) {
    const struct capture_options options = {0};
    const struct memlog_service_moment begun = moment();
    const struct ml_timestamp start = ml_timestamp_of(&begun);
    struct ml_session *session = ml_session_new(&start, 0);
    struct ml_snapshot *snapshot = NULL;
    FILE *file = fopen(words[0], "w");
    int fd = fileno(file);
    struct ml_dump_sink sink = ml_dump_sink_over(&fd);
    uint64_t written_bytes = 0;

    capture_run(&capture, &options, words + 1);
    const struct memlog_service_moment ended = moment();
    replay(session, start, ml_timestamp_of(&ended));
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
    snapshot->order.now = moment();
    snapshot->complete = true;
    ck_assert_int_eq(ml_dump_write(snapshot, &sink, &written_bytes), ML_OK);
    fclose(file);
    ml_snapshot_free(snapshot);
    ml_session_free(session);
    capture_free(&capture);
}
END_TEST

int main(int argc, char **argv) {
    Suite *suite = suite_create("dump_tool");
    TCase *tests = tcase_create("all");
    SRunner *runner = srunner_create(suite);

    if (argc < 3) {
        fprintf(stderr, "usage: %s FILE PROGRAM [ARGS...]\n", argv[0]);
        return 2;
    }
    words = argv + 1;
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, dump_the_program);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_MINIMAL);
    return srunner_ntests_failed(runner) == 0 ? 0 : 1;
}
