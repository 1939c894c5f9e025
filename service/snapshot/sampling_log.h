/* The sampling intervals of a process through time. Room: service. Context: pure.
 *
 * One rule: the log is bounded. Of more changes than it holds it keeps the first and the last, and
 * counts the rest.
 *
 * Each thread records the interval that it begins to use, and threads are read in any order. So
 * changes are sorted by their time, and a repeated interval is recorded once. */
#ifndef MEMLOG_SERVICE_SNAPSHOT_SAMPLING_LOG_H
#define MEMLOG_SERVICE_SNAPSHOT_SAMPLING_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { ML_SAMPLING_LOG_MAX = 64 };

struct ml_sampling_change {
    uint64_t ticks;
    uint64_t interval_bytes; /* from then on; 1: every allocation */
};

struct ml_sampling_log {
    struct ml_sampling_change changes[ML_SAMPLING_LOG_MAX]; /* the first: its start */
    uint32_t count;
    bool begun;             /* its start was read, which may come last */
    uint64_t left_out;      /* between the last two */
    uint64_t longest_bytes; /* interval */
};

/* The profile's start was read. Before it the log is all zero but for longest_bytes, the interval
 * that is expected. */
void ml_sampling_log_begin(struct ml_sampling_log *log, uint64_t ticks, uint64_t interval_bytes);

/* A thread begins to use that interval. */
void ml_sampling_log_note(struct ml_sampling_log *log, uint64_t ticks, uint64_t interval_bytes);

/* The interval that holds now. */
static inline uint64_t ml_sampling_log_latest(const struct ml_sampling_log *log) {
    return log->count > 0 ? log->changes[log->count - 1].interval_bytes : log->longest_bytes;
}

#endif
