/* The real memlog-service in its real sandbox: a host and hand-made clients around it. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/service/fixture.h"

START_TEST(serves_a_client) {
    struct service service;
    struct client client;
    service_start(&service);
    client_join(&service, &client, 1);
    client_put_ten_blocks(&client);
    struct memlog_service_totals tree;
    const struct memlog_service_client_figures figures = service_client(&service, 1, &tree);
    client_has_ten_blocks(&figures);
    ck_assert(figures.complete);
    ck_assert_uint_eq(tree.live_bytes, 600);
    ck_assert_uint_eq(tree.peak_bytes, 1000);
    struct memlog_service_dump_reply reply;
    const int file_fd = service_dump(&service, FIXTURE_DEADLINE_MS, &reply);
    struct stat about;
    ck_assert_int_eq(fstat(file_fd, &about), 0);
    ck_assert(reply.complete);
    ck_assert_uint_eq(reply.trouble.count_bytes, 0);
    ck_assert_uint_gt(reply.written_bytes, 100);
    ck_assert_int_eq((int64_t)reply.written_bytes, about.st_size);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(sees_the_unflushed_staging_of_an_idle_thread) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_put_start(&client);
    client_flush(&client, 0);
    client_put_alloc(&client, 1, 0x20000, 4321);
    client_add(&service, &client);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    ck_assert_uint_eq(figures.totals.live_bytes, 4321);
    ck_assert(figures.complete);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(keeps_the_profile_of_a_process_that_ended) {
    struct service service;
    struct client client;
    service_start(&service);
    client_join(&service, &client, 1);
    client_put_ten_blocks(&client);
    /* Our end of the pipe stays open, as a forked child's would. */
    service_end_client(&service, 1);
    const struct memlog_service_drain_request drain = {.deadline_ms = FIXTURE_DEADLINE_MS};
    struct memlog_service_drain_reply drained;
    ck_assert_int_eq(
        memlog_service_drain_wait(service.port, &drain, FIXTURE_WAIT_MS, &drained), ML_OK
    );
    ck_assert(drained.complete);
    client_close(&client);
    struct memlog_service_totals tree;
    const struct memlog_service_client_figures figures = service_client(&service, 1, &tree);
    client_has_ten_blocks(&figures);
    ck_assert_uint_eq(tree.peak_bytes, 1000);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(reads_what_a_killed_process_left_behind) {
    struct service service;
    struct client client;
    service_start(&service);
    client_join(&service, &client, 1);
    client_put_ten_blocks(&client);
    /* Killed between stamp and publishing. */
    struct ml_staging_lane *lane = client_lane_header(&client, 0);
    lane->published |= ML_PUBLISHED_BUSY;
    client_close(&client);
    service_end_client(&service, 1);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    client_has_ten_blocks(&figures);
    service_stop_quietly(&service);
}
END_TEST

/* The losses are all new to the service, and nobody is there any more to be looked at again. */
START_TEST(reads_what_stands_behind_dropped_chunks_of_a_process_that_has_ended) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_put_start(&client);
    client_put_alloc(&client, 0, 0x10000, 100);
    client_drop(&client, 0, 1);
    client_put_start(&client);
    client_put_alloc(&client, 0, 0x20000, 10);
    client_add(&service, &client);
    service_end_client(&service, 1);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    ck_assert_uint_eq(figures.events, 1);
    ck_assert_uint_eq(figures.lost_events, 1);
    ck_assert_uint_eq(figures.totals.live_bytes, 10);
    client_close(&client);
    service_stop_quietly(&service);
}
END_TEST

/* Killed behind `sent`, with the next chunk in its other slot: ipc/wire/staging.h. */
START_TEST(reads_what_stands_behind_a_dropped_chunk_that_nobody_lived_to_count) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 2);
    client_put_start(&client);
    client_put_alloc(&client, 0, 0x10000, 100);
    client_drop(&client, 0, 1);
    client_lane_header(&client, 0)->lost_chunks = 0;
    client_put_start(&client);
    client_put_alloc(&client, 0, 0x20000, 10);
    client_add(&service, &client);
    service_end_client(&service, 1);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    ck_assert_uint_eq(figures.events, 1);
    ck_assert_uint_eq(figures.lost_events, 1);
    ck_assert_uint_eq(figures.totals.live_bytes, 10);
    ck_assert(!figures.complete);
    client_close(&client);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(does_not_wait_for_a_stopped_thread) {
    struct service service;
    struct client stopped;
    struct client other;
    service_start(&service);
    client_join(&service, &stopped, 1);
    client_join(&service, &other, 2);
    client_put_ten_blocks(&stopped);
    client_put_ten_blocks(&other);
    struct ml_staging_lane *lane = client_lane_header(&stopped, 0);
    lane->published |= ML_PUBLISHED_BUSY;
    const uint64_t before = fixture_now();
    struct memlog_service_dump_reply reply;
    (void)close(service_dump(&service, 100, &reply));
    ck_assert_uint_lt(fixture_now() - before, UINT64_C(30000000000)); /* not for ever */
    service_has_ten_blocks(&service, 2);
    lane->published &= ~(uint64_t)ML_PUBLISHED_BUSY;
    service_has_ten_blocks(&service, 1);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(ends_with_its_host) {
    struct service service;
    struct client client;
    service_start(&service);
    client_join(&service, &client, 1);
    client_put_ten_blocks(&client);
    service_stop_quietly(&service);
    char error[512];
    service_error(&service, error, sizeof(error));
    ck_assert_str_eq(error, "");
}
END_TEST

START_TEST(says_why_a_dump_cannot_be_written) {
    struct service service;
    service_start(&service);
    char path[] = "/tmp/memlog-service-test-XXXXXX";
    const int made_fd = mkstemp(path);
    ck_assert_int_ge(made_fd, 0);
    const int read_only_fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(read_only_fd, 0);
    (void)unlink(path);
    const struct memlog_service_dump_request request = {
        .order = {.now = fixture_timestamp(), .deadline_ms = FIXTURE_DEADLINE_MS},
        .file = read_only_fd};
    struct memlog_service_dump_reply reply;
    ck_assert_int_eq(
        memlog_service_dump_wait(service.port, &request, FIXTURE_WAIT_MS, &reply), ML_OK
    );
    ck_assert(!reply.complete);
    static const char expected[] = "cannot write the dump: Bad file descriptor";
    ck_assert_uint_eq(reply.trouble.count_bytes, sizeof(expected) - 1);
    ck_assert_mem_eq(reply.trouble.data, expected, sizeof(expected) - 1);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(a_dump_without_a_forked_child_is_not_complete) {
    struct service service;
    struct client client;
    service_start(&service);
    client_join(&service, &client, 1);
    client_put_ten_blocks(&client);
    for (uint64_t lost = 1; lost <= 2; lost++) {
        struct memlog_service_dump_reply reply;
        const int file_fd = memfd_create("dump", MFD_CLOEXEC);
        ck_assert_int_ge(file_fd, 0);
        const struct memlog_service_dump_request request = {
            .order =
                {.now = fixture_timestamp(),
                 .deadline_ms = FIXTURE_DEADLINE_MS,
                 .lost_forks = lost},
            .file = file_fd};
        ck_assert_int_eq(
            memlog_service_dump_wait(service.port, &request, FIXTURE_WAIT_MS, &reply), ML_OK
        );
        ck_assert(reply.whole && !reply.complete);
        const char *expected = lost == 1 ? "1 forked child could not be recorded"
                                         : "2 forked children could not be recorded";
        ck_assert_uint_eq(reply.trouble.count_bytes, strlen(expected));
        ck_assert_mem_eq(reply.trouble.data, expected, strlen(expected));
    }
    /* The process itself is as whole as it was. */
    ck_assert(service_client(&service, 1, NULL).complete);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(serves_where_a_container_forbids_namespaces) {
    struct service service;
    struct client client;
    service_start_contained(
        &service, "memlog-service", (const char *const[]){"--sandbox=auto", NULL}
    );
    service_speak(&service);
    const struct memlog_service_configure_reply reply = service_configure(&service);
    static const char expected[] = "user namespace (Operation not permitted)";
    ck_assert_uint_gt(reply.missing_sandbox.count_bytes, sizeof(expected));
    ck_assert_mem_eq(reply.missing_sandbox.data, expected, sizeof(expected) - 1);
    client_join(&service, &client, 1);
    client_put_ten_blocks(&client);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    client_has_ten_blocks(&figures);
    struct memlog_service_dump_reply dumped;
    (void)close(service_dump(&service, FIXTURE_DEADLINE_MS, &dumped));
    ck_assert(dumped.complete);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(refuses_a_container_when_strict) {
    struct service service;
    service_start_contained(
        &service, "memlog-service", (const char *const[]){"--sandbox=strict", NULL}
    );
    const int status = service_wait(&service);
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 3, "wait status %x", (unsigned)status
    );
    char error[2048];
    service_error(&service, error, sizeof(error));
    ck_assert_ptr_nonnull(strstr(error, "--sandbox=strict refuses to run without: user namespace"));
}
END_TEST

#ifdef __x86_64__
/* Every clock that a host may choose. */
START_TEST(serves_by_the_tsc) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){"--sandbox=strict", NULL});
    service_speak(&service);
    struct memlog_service_configure_request request = {
        .setup = {
            .version = MEMLOG_SERVICE_SERVICE_VERSION,
            .clock = MEMLOG_SERVICE_CLOCK_TSC,
            .start = fixture_timestamp()}};
    request.setup.start.ticks = __builtin_ia32_rdtsc();
    struct memlog_service_configure_reply configured;
    ck_assert_int_eq(
        memlog_service_configure_wait(service.port, &request, FIXTURE_WAIT_MS, &configured), ML_OK
    );
    struct memlog_service_dump_request dump = {
        .order = {.now = fixture_timestamp(), .deadline_ms = FIXTURE_DEADLINE_MS},
        .file = memfd_create("dump", MFD_CLOEXEC)};
    dump.order.now.ticks = __builtin_ia32_rdtsc();
    struct memlog_service_dump_reply dumped;
    ck_assert_int_eq(
        memlog_service_dump_wait(service.port, &dump, FIXTURE_WAIT_MS, &dumped), ML_OK
    );
    ck_assert(dumped.complete);
    (void)close(dump.file);
    service_stop_quietly(&service);
}
END_TEST
#endif

START_TEST(refuses_to_start_without_a_level) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){NULL});
    int status = service_wait(&service);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    service_start_with(
        &service, "memlog-service", (const char *const[]){"--sandbox=perhaps", NULL}
    );
    status = service_wait(&service);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}
END_TEST

START_TEST(does_not_die_of_signals_that_mean_the_program) {
    struct service service;
    service_start(&service);
    static const int signals[] = {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTERM, SIGUSR1};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        ck_assert_int_eq(kill(service.pid, signals[i]), 0);
    }
    struct memlog_service_figures_reply reply;
    service_figures(&service, &reply);
    service_stop_quietly(&service);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_test(all, serves_a_client);
    tcase_add_test(all, sees_the_unflushed_staging_of_an_idle_thread);
    tcase_add_test(all, keeps_the_profile_of_a_process_that_ended);
    tcase_add_test(all, reads_what_a_killed_process_left_behind);
    tcase_add_test(all, reads_what_stands_behind_dropped_chunks_of_a_process_that_has_ended);
    tcase_add_test(all, reads_what_stands_behind_a_dropped_chunk_that_nobody_lived_to_count);
    tcase_add_test(all, does_not_wait_for_a_stopped_thread);
    tcase_add_test(all, ends_with_its_host);
    tcase_add_test(all, says_why_a_dump_cannot_be_written);
    tcase_add_test(all, a_dump_without_a_forked_child_is_not_complete);
    tcase_add_test(all, serves_where_a_container_forbids_namespaces);
    tcase_add_test(all, refuses_a_container_when_strict);
#ifdef __x86_64__
    tcase_add_test(all, serves_by_the_tsc);
#endif
    tcase_add_test(all, refuses_to_start_without_a_level);
    tcase_add_test(all, does_not_die_of_signals_that_mean_the_program);
    return fixture_run("service/service", all);
}
