/* The running processes together: their live sum and its exact peak. Room: service. Context: the
 * session's thread; changes of clients that are applied apart are merged afterwards.
 *
 * One rule: `epoch` grows with every new maximum. A counter cell that changes for the first time in
 * an epoch keeps its value from before: that is its share at the peak. So the shares of all cells
 * at the peak cost O(1) an event and no copy. */
#ifndef MEMLOG_SERVICE_HEAP_TREE_H
#define MEMLOG_SERVICE_HEAP_TREE_H

#include <stdint.h>

/* The largest live sum of a process, sampled or not: more than the 128 TiB of user addresses of
 * four-level paging. 2^16 clients with it do not wrap a 64-bit sum. */
#define ML_LIVE_MAX_BYTES (((uint64_t)1 << 48) - 1)

struct ml_tree {
    uint64_t live_bytes, live_blocks; /* of the processes that run */
    uint64_t peak_bytes, peak_blocks; /* blocks at the moment of most bytes */
    uint64_t peak_ticks;
    uint64_t epoch; /* from 1 */
};

void ml_tree_init(struct ml_tree *tree);

/* Check the sum, valid at `ticks`, for a new maximum. */
static inline void ml_tree_note(struct ml_tree *tree, uint64_t ticks) {
    if (tree->live_bytes > tree->peak_bytes) {
        tree->peak_bytes = tree->live_bytes;
        tree->peak_blocks = tree->live_blocks;
        tree->peak_ticks = ticks;
        tree->epoch++;
    }
}

#endif
