#include "service/heap/change_log.h"

#include <stddef.h>

bool ml_change_logs_stay_below(
    const struct ml_change_log *logs, uint32_t count, const struct ml_tree *tree
) {
    /* Live sums are below 2^48 each, and there are at most 2^16 processes. */
    uint64_t most_bytes = tree->live_bytes;
    for (uint32_t i = 0; i < count; i++) {
        most_bytes += (uint64_t)logs[i].most_bytes;
    }
    return most_bytes <= tree->peak_bytes;
}

/* ---- the heap of logs; at_peak counts what is added already */

static uint64_t first_of(const struct ml_change_log *log) {
    return log->changes[log->at_peak].time;
}

static bool earlier(const struct ml_change_log *a, const struct ml_change_log *b) {
    const uint64_t time_a = first_of(a);
    const uint64_t time_b = first_of(b);
    return time_a != time_b ? time_a < time_b : a->order < b->order;
}

static void sift(struct ml_change_log **heap, uint32_t count, uint32_t at) {
    struct ml_change_log *const moved = heap[at];
    for (;;) {
        uint32_t least = 2 * at + 1;
        if (least >= count) {
            break;
        }
        if (least + 1 < count && earlier(heap[least + 1], heap[least])) {
            least++;
        }
        if (!earlier(heap[least], moved)) {
            break;
        }
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = moved;
}

/* Until when heap[0]'s changes come before every other log's. */
static uint64_t alone_until(struct ml_change_log *const *heap, uint32_t count) {
    uint64_t until = UINT64_MAX;
    for (uint32_t i = 1; i < 3 && i < count; i++) {
        const uint64_t other = first_of(heap[i]);
        if (heap[0]->order < heap[i]->order) {
            until = other < until ? other : until;
        } else if (other <= until) {
            until = other - 1; /* heap[0] comes first, so other > 0 */
        }
    }
    return until;
}

/* ---- the sum */

/* Where the last maximum was. */
struct summit {
    const struct ml_change_log *log; /* NULL: there was none */
    uint32_t changes;                /* of that log, up to it */
};

/* Add heap[0]'s changes up to `until`. */
static void
add_run(struct ml_change_log *log, uint64_t until, struct ml_tree *tree, struct summit *summit) {
    uint32_t at = log->at_peak;
    do {
        const struct ml_change *change = &log->changes[at++];
        tree->live_bytes += (uint64_t)change->bytes;
        tree->live_blocks += (uint64_t)(int64_t)change->blocks;
        if (tree->live_bytes > tree->peak_bytes) {
            tree->peak_bytes = tree->live_bytes;
            tree->peak_blocks = tree->live_blocks;
            tree->peak_ticks = change->time;
            *summit = (struct summit){.log = log, .changes = at};
        }
    } while (at < log->count && log->changes[at].time <= until);
    log->at_peak = at;
}

/* Number of a log's changes up to and including the one that reached the tree's peak. */
static uint32_t
changes_until(const struct ml_change_log *log, const struct summit *summit, uint64_t ticks) {
    if (log == summit->log) {
        return summit->changes;
    }
    const bool equal_too = log->order < summit->log->order;
    uint32_t low = 0;
    uint32_t high = log->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const uint64_t time = log->changes[middle].time;
        if (time < ticks || (equal_too && time == ticks)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool ml_change_logs_merge(
    struct ml_change_log *logs, uint32_t count, struct ml_change_log **heap, struct ml_tree *tree
) {
    struct summit summit = {.log = NULL};
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        logs[i].at_peak = 0;
        if (logs[i].count > 0) {
            heap[left++] = &logs[i];
        }
    }
    for (uint32_t i = left / 2; i-- > 0;) {
        sift(heap, left, i);
    }
    while (left > 0) {
        add_run(heap[0], alone_until(heap, left), tree, &summit);
        if (heap[0]->at_peak == heap[0]->count) {
            heap[0] = heap[--left];
        }
        if (left > 1) {
            sift(heap, left, 0);
        }
    }
    if (summit.log == NULL) {
        return false;
    }
    tree->epoch++;
    for (uint32_t i = 0; i < count; i++) {
        logs[i].at_peak = changes_until(&logs[i], &summit, tree->peak_ticks);
    }
    return true;
}
