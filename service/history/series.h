/* One figure of a process, of a stack or of the tree through time, in bounded space. Recent time is
 * fine, older time coarser by powers of four. Room: service. Context: the session's thread; no
 * clock of its own.
 *
 * One rule: a coarse slot sums up exactly its four fine ones: least, most and last live bytes, and
 * the last totals. Between two notes the first one holds, but for a maximum that is known to lie
 * there.
 *
 * Level 0 has slots of shape->slot_ns, and each level above has slots four times as long. Each
 * keeps its latest shape->slots. Slots lie on one grid of CLOCK_MONOTONIC, so series of one shape
 * agree. A slot is added to the level above when the next one begins: 4/3 steps a slot. */
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
    /* The smallest capacity of a level. */
    ML_SERIES_LEAST_SLOTS = 8
};

struct ml_series_shape {
    uint64_t slot_ns;
    uint32_t slots;  /* of each level; a multiple of ML_SERIES_LEAST_SLOTS by a power of two */
    bool has_totals; /* has allocated bytes and blocks as well */
};

/* A ring, whose capacity grows with its content. */
struct ml_series_level {
    uint64_t *slots;
    uint64_t newest; /* its number on the grid */
    uint32_t count, capacity;
    uint32_t at;   /* of the newest */
    bool is_stuck; /* the budget refused more room */
};

struct ml_series {
    const struct ml_series_shape *shape;
    uint64_t first_ns, last_ns; /* of the notes; last_ns 0: none yet */
    struct ml_series_level levels[ML_SERIES_LEVELS];
};

/* One note. */
struct ml_series_now {
    uint64_t live_bytes;
    uint64_t most_bytes; /* known to have been live since the last note; 0: no more than now */
    uint64_t total_bytes, total_blocks; /* shape->has_totals */
};

void ml_series_init(struct ml_series *series, const struct ml_series_shape *shape);
void ml_series_fini(struct ml_series *series, struct ml_budget *budget);

/* Note the figures at `ns`; a moment before the last note counts as that. If the budget refuses,
 * levels forget earlier. */
void ml_series_note(
    struct ml_series *series, struct ml_budget *budget, uint64_t ns, const struct ml_series_now *now
);

/* The most points that ml_series_points writes. */
uint32_t ml_series_points_max(const struct ml_series *series);

/* Write the points, the oldest first. Each reaches from the end of the one before it to its own
 * end, the first from first_ns. A point between two that say the same is left out. Returns their
 * number. */
uint32_t ml_series_points(const struct ml_series *series, struct ml_snapshot_point *out_points);

#endif
