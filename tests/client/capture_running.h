/* How the host for client tests has a program recorded that runs already. Room: tests. */
#ifndef MEMLOG_TESTS_CLIENT_CAPTURE_RUNNING_H
#define MEMLOG_TESTS_CLIENT_CAPTURE_RUNNING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/wire/message.h"
#include "tests/client/capture.h"

/* One message, and what came with it. */
struct capture_message {
    uint8_t packet[8192];
    size_t count_bytes;
    int fds[ML_HANDLES_MAX];
    size_t fds_count;
    pid_t pid;
};

/* Start arguments[0] without memlog; returns when it has closed its standard output. */
pid_t capture_start_bare(char *const arguments[]);
/* Have the tracer attach `target`; returns our end of what they say. */
int capture_start_tracer(pid_t target);
/* Take what a tracer says: the process's connection, then how it went. */
void capture_hear_tracer(
    struct capture *capture, const struct capture_message *got, int *out_connection
);

#endif
