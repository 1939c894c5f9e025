/* For a tracker's own files: tracker.c applies events, tracker_shares.c keeps the shares at peaks,
 * tracker_check.c recomputes all sums. Room: service. Context: whoever works on the client.
 *
 * One rule: tracker.c and, for events on the fast path, tracker_fast_path.h alone change a cell's
 * sums. */
#ifndef MEMLOG_SERVICE_HEAP_TRACKER_INTERNAL_H
#define MEMLOG_SERVICE_HEAP_TRACKER_INTERNAL_H

#include "service/heap/tracker.h"

/* The tree has reached a new maximum: the present contents of this process's cells are their
 * shares. */
void ml_tracker_notice_tree(struct ml_tracker *tracker);

/* The mark of the last maximum of the cell's heap. */
static inline uint64_t
ml_tracker_peak_mark(const struct ml_tracker *tracker, const struct ml_cell *cell) {
    const unsigned heap = ml_cell_heap(cell->key);
    return heap == 0 ? tracker->peak_mark : tracker->heaps[heap].peak_mark;
}

/* The cell is about to change for the first time since some maximum: save its contents as its share
 * of each maximum for which it has none. */
void ml_tracker_keep_shares(const struct ml_tracker *tracker, struct ml_cell *cell);

#endif
