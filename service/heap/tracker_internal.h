/* For the files of which a tracker is made: tracker.c applies events, tracker_shares.c knows what
 * was held at the peaks, tracker_check.c works all sums out anew. Room: service. Context: whoever
 * works on the client.
 *
 * One rule: tracker.c and, for events on the fast path, tracker_fast_path.h alone change a cell's
 * sums. */
#ifndef MEMLOG_SERVICE_HEAP_TRACKER_INTERNAL_H
#define MEMLOG_SERVICE_HEAP_TRACKER_INTERNAL_H

#include "service/heap/tracker.h"

/* The tree has reached a new maximum: what this process's cells hold is their share of it. */
void ml_tracker_notice_tree(struct ml_tracker *tracker);

/* The cell is about to change, for the first time since some maximum: it keeps what it holds as its
 * share of each maximum that it does not have a share of. */
void ml_tracker_keep_shares(const struct ml_tracker *tracker, struct ml_cell *cell);

#endif
