/* At what interval a process was sampled, from when on. Room: service. Context: pure.
 *
 * One rule: it is bounded. Of more changes than it holds the first and the last are told, and how
 * many are not.
 *
 * Each thread of the process says at what interval it samples, when it has heard of a new one, and
 * threads are read in any order: changes stand by their time, and what several say is told once. */
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
    bool begun;             /* its start has been read: it may come last, out of staging */
    uint64_t left_out;      /* between the last two */
    uint64_t longest_bytes; /* interval */
};

/* The profile's start was read. The log is all zero before, but for longest_bytes: what is expected
 * of the process. */
void ml_sampling_log_begin(struct ml_sampling_log *log, uint64_t ticks, uint64_t interval_bytes);

/* A thread has said so. */
void ml_sampling_log_note(struct ml_sampling_log *log, uint64_t ticks, uint64_t interval_bytes);

/* What holds now. */
static inline uint64_t ml_sampling_log_latest(const struct ml_sampling_log *log) {
    return log->count > 0 ? log->changes[log->count - 1].interval_bytes : log->longest_bytes;
}

#endif
