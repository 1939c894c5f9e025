/* What holds of a live map and of a tracker after every step. Room: tests. */
#ifndef MEMLOG_TESTS_SERVICE_HEAP_CHECKS_H
#define MEMLOG_TESTS_SERVICE_HEAP_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "service/heap/live_map.h"
#include "service/heap/tracker.h"

/* Walk: the next block at or behind *cursor (start with 0). False at the end. */
bool ml_live_map_next(
    const struct ml_live_map *map, size_t *cursor, struct ml_live_block *out_block
);

/* Every block is found from its home, counts agree. */
bool ml_live_map_check(const struct ml_live_map *map);

/* Recompute every sum, and with `has_blocks` those of the blocks too. */
bool ml_tracker_check(const struct ml_tracker *tracker, bool has_blocks);

#endif
