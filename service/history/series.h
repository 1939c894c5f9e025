/* One figure of one process (or stack, or of the tree) through time: fine for what was just now,
 * coarser by powers of four for what is longer ago, in bounded space. Room: service. Context: the
 * session's thread; no clock of its own.
 *
 * One rule: a coarse slot is exactly its four fine ones: least, most and last of what was live, and
 * the last of what had been allocated. What is between two notes is what the first of them said,
 * but for a maximum that is known to lie there.
 *
 * Level 0 has slots of shape->slot_ns, each level above slots four times as long; each keeps its
 * latest shape->slots. Slots lie on one grid of CLOCK_MONOTONIC, so those of all series of a shape
 * agree. A slot goes into the level above when the next one begins: 4/3 steps a slot. */
#ifndef MEMLOG_SERVICE_HISTORY_SERIES_H
#define MEMLOG_SERVICE_HISTORY_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "service/limits/budget.h"
#include "service/snapshot/snapshot.h"

enum {
    ML_SERIES_FACTOR = 4,
    /* Of 250 ms slots the last has 4.5 h: with 512 of them 97 days. */
    ML_SERIES_LEVELS = 9,
    /* The least that a level has room for. */
    ML_SERIES_LEAST_SLOTS = 8
};

struct ml_series_shape {
    uint64_t slot_ns;
    uint32_t slots;  /* of each level; a multiple of ML_SERIES_LEAST_SLOTS by a power of two */
    bool has_totals; /* allocated bytes and blocks, too */
};

/* A ring; room grows with what is in it. */
struct ml_series_level {
    uint64_t *slots;
    uint64_t newest; /* its number on the grid */
    uint32_t count, capacity;
    uint32_t at;   /* of the newest */
    bool is_stuck; /* no more room was to be had */
};

struct ml_series {
    const struct ml_series_shape *shape;
    uint64_t first_ns, last_ns; /* of the notes; last 0: none yet */
    struct ml_series_level levels[ML_SERIES_LEVELS];
};

/* What is noted. */
struct ml_series_now {
    uint64_t live_bytes;
    uint64_t most_bytes; /* that is known to have been live since the last note; 0: no more */
    uint64_t total_bytes, total_blocks; /* shape->has_totals */
};

void ml_series_init(struct ml_series *series, const struct ml_series_shape *shape);
void ml_series_fini(struct ml_series *series, struct ml_budget *budget);

/* It stands so at `ns`; a moment before the last note counts as that. When the budget refuses,
 * levels forget earlier than they would. */
void ml_series_note(
    struct ml_series *series, struct ml_budget *budget, uint64_t ns, const struct ml_series_now *now
);

/* At most so many points come of it. */
uint32_t ml_series_points_max(const struct ml_series *series);

/* The points, the oldest first, each from the end of the one before it (the first from first_ns) to
 * its own; without those between two that say the same. Answers how many. */
uint32_t ml_series_points(const struct ml_series *series, struct ml_snapshot_point *out_points);

#endif
