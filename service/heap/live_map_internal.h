/* A live map's lines, for its own files: live_map.c puts and takes blocks, live_resize.c moves them
 * among more or fewer lines. Room: service.
 * Context: the map's thread.
 *
 * One rule: only a line itself counts its blocks that are elsewhere. */
#ifndef MEMLOG_SERVICE_HEAP_LIVE_MAP_INTERNAL_H
#define MEMLOG_SERVICE_HEAP_LIVE_MAP_INTERNAL_H

#include "service/heap/live_map.h"

/* A saturated overflow count: it stays until the line is moved. */
#define ML_LIVE_OVERFLOW_MAX (UINT32_MAX - ML_LIVE_TURNED_AWAY + 1)

/* The block that a slot describes. */
struct ml_live_block ml_live_unpack(const struct ml_live_map *map, uint64_t rest);

/* The key of the block that a wide slot describes. */
uint64_t ml_live_wide_key(const struct ml_live_map *map, uint64_t rest);

static inline bool ml_live_is_wide(uint64_t rest) {
    return (rest >> ML_LIVE_WIDE_BIT & 1) != 0;
}

/* The hash of what stands in a slot; of a wide one without ML_LIVE_ODD. */
static inline uint64_t ml_live_slot_hash(const struct ml_live_line *line, unsigned slot) {
    const uint64_t high = line->rest[slot] >> ML_LIVE_CELL_BITS;
    return (high << ML_LIVE_LOW_BITS | line->low[slot]) << ML_LIVE_HASH_SHIFT;
}

static inline bool ml_live_line_is_full(const struct ml_live_line *line) {
    return (line->state & ML_LIVE_USED_MASK) == ML_LIVE_USED_MASK;
}

static inline void ml_live_line_add_overflow(struct ml_live_line *line) {
    line->state += line->state >= ML_LIVE_OVERFLOW_MAX ? 0 : ML_LIVE_TURNED_AWAY;
}

static inline void ml_live_line_remove_overflow(struct ml_live_line *line) {
    line->state -= line->state >= ML_LIVE_OVERFLOW_MAX ? 0 : ML_LIVE_TURNED_AWAY;
}

/* Put a new block into its home or the line beside it. False: both are full, and nothing is done or
 * counted. */
static inline bool ml_live_line_place(
    const struct ml_live_map *map, struct ml_live_line *home, uint64_t hash, uint64_t rest
) {
    struct ml_live_line *line = home;
    if (ml_live_line_is_full(home)) {
        line = ml_live_map_other(map, home);
        if (ml_live_line_is_full(line)) {
            return false;
        }
        home->state += ML_LIVE_IN_OTHER;
    }
    const unsigned slot = (unsigned)__builtin_ctz(~line->state);
    line->state |= 1U << slot;
    line->low[slot] = ml_live_low(hash);
    line->rest[slot] = rest;
    return true;
}

#endif
