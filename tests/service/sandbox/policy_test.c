/* Each line of service/sandbox/policy/syscalls.policy is needed: without it its exercise dies of
 * SIGSYS, and with all lines no exercise does. */
#include <check.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/seccomp/policy.h"
#include "service/sandbox/policy/policy.h"
#include "tests/service/fixture.h"
#include "tests/suite.h"

enum { CLOSED_SOON_MS = 200 };

/* A host's whole life with its service, whatever becomes of the service meanwhile. */
static void live(struct service *service) {
    struct client client;
    service_speak(service);
    client_open(&client, 1, 1);
    client_put_start(&client);
    client_put_alloc(&client, 0, 0x1000, 10);
    client_flush(&client, 0);
    client_put_alloc(&client, 0, 0x2000, 20);
    const struct memlog_service_configure_request configure = {
        .setup = {
            .version = MEMLOG_SERVICE_SERVICE_VERSION,
            .clock = MEMLOG_SERVICE_CLOCK_MONOTONIC,
            .start = fixture_timestamp()}};
    const struct memlog_service_add_client_request add = {
        .client = {.id = 1, .pid = 2, .sampling_bytes = 1, .start = fixture_timestamp()},
        .event_pipe = client.read_fd,
        .staging = client.staging_fd};
    const struct memlog_service_dump_request dump = {
        .order = {.now = fixture_timestamp(), .deadline_ms = CLOSED_SOON_MS},
        .file = memfd_create("dump", MFD_CLOEXEC)};
    const struct memlog_service_end_client_request end = {
        .end = {.id = 1, .end = fixture_timestamp()}};
    struct memlog_service_configure_reply configured;
    struct memlog_service_dump_reply dumped;
    if (memlog_service_configure_wait(service->port, &configure, FIXTURE_WAIT_MS, &configured) ==
            ML_OK &&
        memlog_service_add_client(service->port, &add) == ML_OK &&
        memlog_service_end_client(service->port, &end) == ML_OK) {
        (void)!memlog_service_dump_wait(service->port, &dump, FIXTURE_WAIT_MS, &dumped);
    }
    (void)close(dump.file);
    client_close(&client);
}

static int run(uint32_t left_out_line, const char *exercise) {
    char number[16];
    (void)snprintf(number, sizeof(number), "%u", left_out_line);
    struct service service;
    service_start_with(&service, "exercise", (const char *const[]){number, exercise, NULL});
    if (strcmp(exercise, "life") == 0) {
        live(&service);
    }
    return service_stop(&service);
}

/* Not the lines that only sanitizers need, nor what their runtimes do in their own way: their
 * malloc, their locks, for which any futex is permitted. */
static bool is_exercised(const struct ml_seccomp_line *line) {
#ifdef __SANITIZE_ADDRESS__
    static const char *const of_runtime[] = {
        "grow_heap",
        "grow_block",
        "free_block",
        "large_table",
        "give_back",
        "share_out",
        "contend"};
    for (size_t i = 0; i < sizeof(of_runtime) / sizeof(of_runtime[0]); i++) {
        if (strcmp(line->exercise, of_runtime[i]) == 0) {
            return false;
        }
    }
#endif
    return strcmp(line->exercise, "-") != 0;
}

/* glibc 2.36 makes these calls, and one service runs on all later ones too: fstat() has its own
 * call again, qsort() asks for no memory, abort() leaves signals as they are. */
static bool is_for_older_libc(const struct ml_seccomp_line *line) {
    enum { MINOR_TO_BE_EXERCISED = 36 };
    static const char begin[] = "2.";
    static const char *const calls[] = {"newfstatat", "sysinfo", "rt_sigprocmask"};
    const char *version = gnu_get_libc_version();
    if (strncmp(version, begin, strlen(begin)) != 0 ||
        strtol(version + strlen(begin), NULL, 10) <= MINOR_TO_BE_EXERCISED) {
        return false;
    }
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(line->name, calls[i]) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(without_the_line_its_exercise_dies) {
    const struct ml_seccomp_line *line = &ml_service_policy.lines[_i];
    if (line->number < 0 || !is_exercised(line) || is_for_older_libc(line)) {
        return;
    }
    const int status = run(line->line, line->exercise);
    ck_assert_msg(
        WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS,
        "syscalls.policy:%u: %s: nothing misses it in `%s` (wait status %x)",
        line->line,
        line->name,
        line->exercise,
        (unsigned)status
    );
}
END_TEST

START_TEST(with_all_lines_the_exercise_lives) {
    const struct ml_seccomp_line *line = &ml_service_policy.lines[_i];
    if (strcmp(line->exercise, "-") == 0) {
        return;
    }
    const int status = run(0, line->exercise);
    if (strcmp(line->exercise, "abort") == 0) {
        ck_assert_msg(
            WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "wait status %x", (unsigned)status
        );
        return;
    }
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 0,
        "%s: wait status %x",
        line->exercise,
        (unsigned)status
    );
}
END_TEST

int main(void) {
    TCase *lines = tcase_create("lines");
    tcase_set_timeout(lines, 30);
    tcase_add_loop_test(
        lines, without_the_line_its_exercise_dies, 0, (int)ml_service_policy.lines_count
    );
    tcase_add_loop_test(
        lines, with_all_lines_the_exercise_lives, 0, (int)ml_service_policy.lines_count
    );
    return run_suite("service/sandbox/policy", lines);
}
