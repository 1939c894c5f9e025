/* What a process's live sums went through while its events were applied apart from the other
 * processes', so that the tree's peak can be found afterwards. Room: service. Context: whoever
 * works on the client writes it; the session's thread reads it when nobody does.
 *
 * One rule: a log has every change of every cell, in the order in which they were made; of no
 * sampled block, whose variances it could not tell.
 *
 * Processes that are applied apart do not know what the others have live at a stamp, so none of
 * them can tell whether the tree is at a new maximum. Each notes its changes instead: stamps and
 * amounts of all of them, merged, say where the maximum was, and walked back from the end to there
 * they say what each cell held at that moment. */
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
        abort(); /* somebody has counted wrongly, and what stands behind is somebody else's */
    }
    log->changes[log->count++] = *change;
    log->bytes += change->bytes;
    log->most_bytes = log->bytes > log->most_bytes ? log->bytes : log->most_bytes;
}

/* Whether these processes, in whatever order, cannot have brought the tree above its peak. `tree`
 * is as it was before their changes, as below. */
bool ml_change_logs_stay_below(
    const struct ml_change_log *logs, uint32_t count, const struct ml_tree *tree
);

/* Add up the changes of all logs in the order of their stamps: *tree is moved on, with its sums,
 * and if there was a new maximum with its peak and its epoch; each log's at_peak says then how far
 * it had come. True if there was one. `heap` has room for `count` pointers. */
bool ml_change_logs_merge(
    struct ml_change_log *logs, uint32_t count, struct ml_change_log **heap, struct ml_tree *tree
);

#endif
