/* A small host for client tests. It runs a program under the preload, reads the stream of each of
 * its processes, and puts the events in order. Room: tests.
 *
 * One rule: whatever it can check, it does not take from the client unchecked. */
#ifndef MEMLOG_TESTS_CLIENT_CAPTURE_H
#define MEMLOG_TESTS_CLIENT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/wire/event.h"
#include "ipc/wire/staging.h"

enum { CAPTURE_PROCESSES_MAX = 64 };

struct captured_event {
    struct ml_event event; /* its pointers point into the process's bytes */
    uint32_t lane;
    uint32_t order;
    uint32_t profile; /* by its chunk's number: ipc/wire/staging.h */
};

struct captured_process {
    pid_t pid;
    bool forked;
    uint64_t fork_serial;
    uint8_t *bytes;
    size_t bytes_count, bytes_capacity;
    struct captured_event *events; /* by profile, time, lane and order */
    size_t events_count;
    uint32_t lanes_used;
    struct ml_staging_header header;
    uint64_t lost_events;
    uint64_t produced;       /* as the lanes count them */
    uint32_t unread_profile; /* staging of older ones was read, or is not wanted */
    uint64_t waits, waited_ns, longest_wait_ns;
    int pipe_fd, staging_fd, control_fd;
};

/* What SIGUSR1 and SIGUSR2 of a process do: the first begins a new profile for it, the second stops
 * its recording; the same signal answers. */
enum capture_signals {
    SIGNALS_DO_NOTHING,
    SIGNALS_ANSWERED,      /* staging of an odd profile is read then, so no thread may record */
    SIGNALS_READ_EACH_TIME /* staging of an even profile too */
};

struct capture_options {
    uint32_t stack_mode;
    uint32_t clock; /* enum ml_clock */
    uint32_t slots;
    uint32_t unwind_check;
    bool dormant;
    bool read_nothing; /* leave the pipe full */
    bool no_tail;      /* do not read staging at the end */
    enum capture_signals signals;
    bool no_events; /* keep the bytes alone: long streams to be written to files */
    /* The program starts bare, and memlog comes to it while it runs, when it has closed its
     * standard output: so it says that it is ready. */
    bool attach;
    bool entries;            /* hook an allocator inside the executable */
    uint64_t sampling_bytes; /* 0: record each block */
    bool measures_cost;
};

struct capture {
    int exit_status; /* as waitpid gives it */
    struct captured_process processes[CAPTURE_PROCESSES_MAX];
    size_t processes_count;
    int lease_fd;
    uint32_t not_profiled_count;
    uint32_t allocators_count;
    char not_profiled[256];
    char trouble[256]; /* of an attachment; "": it is done */
    uint32_t attached_functions;
};

/* Run arguments[0] (a path), and wait for it and for all its descendants. Asserts what holds for
 * every program. */
void capture_run(
    struct capture *out_capture, const struct capture_options *options, char *const arguments[]
);
void capture_free(struct capture *capture);

/* The events of one profile alone, as a view of the process. */
void capture_profile(
    const struct captured_process *process, uint32_t profile, struct captured_process *out_part
);

/* Live and total figures of a process, by its events alone. */
struct captured_sums {
    uint64_t live_bytes, live_blocks, total_bytes, total_blocks, unknown_frees, double_allocs;
};
struct captured_sums capture_sums(const struct captured_process *process);

#endif
