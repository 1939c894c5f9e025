#include "tests/client/capture_running.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mojom_like_idl/contracts/heap_tracer_mojom.h"

/* Field 22 of its stat. */
static void read_start_time(pid_t pid, char *out_ticks, size_t room) {
    char path[64];
    char text[1024] = "";
    unsigned long long ticks = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
    (void)close(fd);
    const char *at = strrchr(text, ')');
    ck_assert_ptr_nonnull(at);
    for (int field = 2; field < 22; field++) {
        at = strchr(at + 1, ' ');
        ck_assert_ptr_nonnull(at);
    }
    ticks = strtoull(at, NULL, 10);
    (void)snprintf(out_ticks, room, "%llu", ticks);
}

int capture_start_tracer(pid_t target) {
    int ends[2];
    char pid_text[16];
    char ticks[32];
    (void)snprintf(pid_text, sizeof(pid_text), "%d", (int)target);
    read_start_time(target, ticks, sizeof(ticks));
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const char *tracer =
            access("memlog-tracer", X_OK) == 0 ? "./memlog-tracer" : "out/memlog-tracer";
        (void)dup2(ends[1], 3);
        (void)close_range(4, ~0u, 0);
        (void)execl(tracer, tracer, "attach", pid_text, ticks, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    return ends[0];
}

/* The program is ready. */
static void wait_until_ready(int output_fd) {
    char byte = 0;
    while (read(output_fd, &byte, 1) > 0) {
    }
    (void)close(output_fd);
}

void capture_hear_tracer(
    struct capture *capture, const struct capture_message *got, int *out_connection
) {
    struct memlog_tracer_connected_request connected;
    struct memlog_tracer_finished_request finished;
    if (memlog_tracer_connected_request_decode(
            0, got->packet, got->count_bytes, got->fds, got->fds_count, NULL, 0, &connected
        ) == ML_OK) {
        *out_connection = connected.connection;
        return;
    }
    ck_assert_int_eq(
        memlog_tracer_finished_request_decode(
            0, got->packet, got->count_bytes, NULL, 0, NULL, 0, &finished
        ),
        ML_OK
    );
    capture->attached_functions = finished.traced.functions;
    if (finished.outcome != MEMLOG_TRACER_OUTCOME_DONE) {
        (void)snprintf(
            capture->trouble,
            sizeof(capture->trouble),
            "%.*s",
            (int)finished.reason.count_bytes,
            finished.reason.data
        );
    }
}

pid_t capture_start_bare(char *const arguments[]) {
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close_range(3, ~0u, 0);
        (void)execv(arguments[0], arguments);
        _exit(127);
    }
    (void)close(ends[1]);
    wait_until_ready(ends[0]);
    return pid;
}
