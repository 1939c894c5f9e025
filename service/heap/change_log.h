/* The changes of a process's live sums while its events are applied apart from other processes',
 * from which the tree's peak is found afterwards. Room: service. Context: whoever works on the
 * client writes it; the session's thread reads it when nobody does.
 *
 * One rule: a log has every change of every cell, in order. It has no sampled blocks, since it does
 * not hold variances, and none of a heap of the program's own, which is in no sum of the tree.
 *
 * Processes that are applied apart do not know what the others hold at a stamp, so none can tell
 * whether the tree is at a new maximum. Each logs its changes instead. Merged by stamp, the logs
 * show when the maximum was; undone from the end to there, they give what each cell held at that
 * moment. */
#ifndef MEMLOG_SERVICE_HEAP_CHANGE_LOG_H
#define MEMLOG_SERVICE_HEAP_CHANGE_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "service/heap/tree.h"

struct ml_change {
    uint64_t time;
    int64_t bytes;
    uint32_t cell;
    int32_t blocks; /* 1 or -1 */
};

struct ml_change_log {
    struct ml_change *changes; /* room for as many as can come: borrowed */
    uint32_t capacity, count;
    int64_t bytes;      /* the sum of all changes */
    int64_t most_bytes; /* and the most that it ever was, 0 at the start */
    uint32_t order;     /* of the process: at equal stamps the smaller comes first */
    uint32_t at_peak;   /* changes up to the tree's peak, by ml_change_logs_merge */
};

static inline void ml_change_log_add(struct ml_change_log *log, const struct ml_change *change) {
    if (log->count == log->capacity) {
        abort(); /* a wrong count: the memory behind is not ours */
    }
    log->changes[log->count++] = *change;
    log->bytes += change->bytes;
    log->most_bytes = log->bytes > log->most_bytes ? log->bytes : log->most_bytes;
}

/* Whether these processes' changes, in any order, cannot have raised the tree above its peak.
 * `tree` is as it was before their changes, as below. */
bool ml_change_logs_stay_below(
    const struct ml_change_log *logs, uint32_t count, const struct ml_tree *tree
);

/* Add up the changes of all logs in the order of their stamps: the sums of *tree are updated, and
 * after a new maximum its peak and epoch too; each log's at_peak then says how many changes it had
 * by that moment. True if there was one. `heap` has room for `count` pointers. */
bool ml_change_logs_merge(
    struct ml_change_log *logs, uint32_t count, struct ml_change_log **heap, struct ml_tree *tree
);

#endif
