#include "service/snapshot/sampling_log.h"

#include <string.h>

/* Make room at `at`. A full log loses the change before the last. */
static void make_room(struct ml_sampling_log *log, uint32_t at) {
    if (log->count == ML_SAMPLING_LOG_MAX) {
        log->changes[log->count - 2] = log->changes[log->count - 1];
        log->left_out++;
        log->count--;
    }
    memmove(&log->changes[at + 1], &log->changes[at], (log->count - at) * sizeof(log->changes[0]));
    log->count++;
}

/* Put the change in its place by time, among those from `first` on. */
static void put(struct ml_sampling_log *log, uint32_t first, struct ml_sampling_change change) {
    uint32_t at = log->count;
    while (at > first && log->changes[at - 1].ticks > change.ticks) {
        at--;
    }
    struct ml_sampling_change *next = &log->changes[at];
    if (at > 0 && log->changes[at - 1].interval_bytes == change.interval_bytes) {
        return;
    }
    if (at < log->count && next->interval_bytes == change.interval_bytes) {
        next->ticks = change.ticks; /* the thread that changed first was read last */
        return;
    }
    if (at == ML_SAMPLING_LOG_MAX - 1 && at < log->count) {
        log->left_out++; /* it would be the change before the last */
        return;
    }
    if (at == ML_SAMPLING_LOG_MAX) {
        log->left_out++;
        at--;
    } else {
        make_room(log, at);
    }
    log->changes[at] = change;
}

static void lengthen(struct ml_sampling_log *log, uint64_t interval_bytes) {
    if (interval_bytes > log->longest_bytes) {
        log->longest_bytes = interval_bytes;
    }
}

void ml_sampling_log_begin(struct ml_sampling_log *log, uint64_t ticks, uint64_t interval_bytes) {
    if (log->count == 0) {
        log->longest_bytes = 0; /* this was the expected one */
    }
    lengthen(log, interval_bytes);
    log->begun = true;
    if (log->count > 0 && log->changes[0].ticks < ticks) {
        ticks = log->changes[0].ticks;
    }
    put(log, 0, (struct ml_sampling_change){.ticks = ticks, .interval_bytes = interval_bytes});
}

void ml_sampling_log_note(struct ml_sampling_log *log, uint64_t ticks, uint64_t interval_bytes) {
    if (log->count == 0) {
        log->longest_bytes = 0;
    }
    lengthen(log, interval_bytes);
    put(log,
        log->begun ? 1 : 0,
        (struct ml_sampling_change){.ticks = ticks, .interval_bytes = interval_bytes});
}
