#include "service/history/series.h"

#include <string.h>

/* The figures of a slot in order; the last two only with has_totals. */
enum { LEAST, MOST, LAST, TOTAL_BYTES, TOTAL_BLOCKS, VALUES };

enum { NS_PER_MS = 1000000 };

static uint32_t values_of(const struct ml_series *series) {
    return series->shape->has_totals ? VALUES : TOTAL_BYTES;
}

static size_t bytes_of(const struct ml_series *series, uint32_t slots) {
    return (size_t)slots * values_of(series) * sizeof(uint64_t);
}

static uint64_t *slot_at(const struct ml_series *series, unsigned level, uint32_t at) {
    return series->levels[level].slots + (size_t)at * values_of(series);
}

static uint64_t *newest_slot(const struct ml_series *series, unsigned level) {
    return slot_at(series, level, series->levels[level].at);
}

static uint64_t slot_ns(const struct ml_series *series, unsigned level) {
    return series->shape->slot_ns << (2 * level); /* ML_SERIES_FACTOR to the level */
}

void ml_series_init(struct ml_series *series, const struct ml_series_shape *shape) {
    *series = (struct ml_series){.shape = shape};
}

void ml_series_fini(struct ml_series *series, struct ml_budget *budget) {
    for (unsigned i = 0; i < ML_SERIES_LEVELS; i++) {
        struct ml_series_level *level = &series->levels[i];
        ml_budget_free(budget, level->slots, bytes_of(series, level->capacity));
    }
    *series = (struct ml_series){.shape = series->shape};
}

/* Make room for one more slot, unless the ring has its full length. */
static void
grow(struct ml_series *series, struct ml_series_level *level, struct ml_budget *budget) {
    if (level->count < level->capacity || level->capacity >= series->shape->slots ||
        level->is_stuck) {
        return;
    }
    const uint32_t wanted = level->capacity == 0 ? ML_SERIES_LEAST_SLOTS : level->capacity * 2;
    /* The ring has not wrapped around yet, so the newest slot is the last. */
    uint64_t *slots = ml_budget_resize(
        budget, level->slots, bytes_of(series, level->capacity), bytes_of(series, wanted)
    );
    if (slots == NULL) {
        level->is_stuck = true;
        return;
    }
    level->slots = slots;
    level->capacity = wanted;
}

/* The next slot, which begins with the figures at the end of the newest. NULL: there is no room. */
static uint64_t *push(struct ml_series *series, unsigned number, struct ml_budget *budget) {
    struct ml_series_level *level = &series->levels[number];
    grow(series, level, budget);
    if (level->capacity == 0) {
        return NULL;
    }
    const uint64_t *before = level->count > 0 ? newest_slot(series, number) : NULL;
    level->at = level->count > 0 ? (level->at + 1) % level->capacity : 0;
    level->count += level->count < level->capacity;
    uint64_t *slot = newest_slot(series, number);
    if (before != NULL) {
        memmove(slot, before, values_of(series) * sizeof(uint64_t));
        slot[LEAST] = slot[LAST];
        slot[MOST] = slot[LAST];
    }
    return slot;
}

static void merge(const struct ml_series *series, uint64_t *slot, const uint64_t *later) {
    slot[LEAST] = later[LEAST] < slot[LEAST] ? later[LEAST] : slot[LEAST];
    slot[MOST] = later[MOST] > slot[MOST] ? later[MOST] : slot[MOST];
    memcpy(slot + LAST, later + LAST, (values_of(series) - LAST) * sizeof(uint64_t));
}

static void
move_to(struct ml_series *series, unsigned number, uint64_t index, struct ml_budget *budget);

/* The newest slot has ended: add it to the level above. */
static void close_newest(struct ml_series *series, unsigned number, struct ml_budget *budget) {
    if (number + 1 == ML_SERIES_LEVELS) {
        return;
    }
    struct ml_series_level *above = &series->levels[number + 1];
    const uint64_t index = series->levels[number].newest / ML_SERIES_FACTOR;
    const uint64_t *closed = newest_slot(series, number);
    if (above->count > 0) {
        move_to(series, number + 1, index, budget);
        merge(series, newest_slot(series, number + 1), closed);
        return;
    }
    uint64_t *slot = push(series, number + 1, budget);
    if (slot != NULL) {
        memcpy(slot, closed, values_of(series) * sizeof(uint64_t));
        above->newest = index;
    }
}

/* Make the slot of that index the newest. Slots that are skipped repeat the last figures. */
static void
move_to(struct ml_series *series, unsigned number, uint64_t index, struct ml_budget *budget) {
    struct ml_series_level *level = &series->levels[number];
    if (index <= level->newest) {
        return;
    }
    close_newest(series, number, budget);
    const uint64_t missing = index - level->newest;
    const uint64_t pushed = missing < series->shape->slots ? missing : series->shape->slots;
    for (uint64_t i = 0; i < pushed; i++) {
        (void)push(series, number, budget);
    }
    level->newest = index;
}

void ml_series_note(
    struct ml_series *series, struct ml_budget *budget, uint64_t ns, const struct ml_series_now *now
) {
    const uint64_t noted[VALUES] = {
        [LEAST] = now->live_bytes,
        [MOST] = now->most_bytes > now->live_bytes ? now->most_bytes : now->live_bytes,
        [LAST] = now->live_bytes,
        [TOTAL_BYTES] = now->total_bytes,
        [TOTAL_BLOCKS] = now->total_blocks};
    struct ml_series_level *finest = &series->levels[0];
    if (finest->count == 0) {
        uint64_t *slot = push(series, 0, budget);
        if (slot != NULL) {
            memcpy(slot, noted, values_of(series) * sizeof(uint64_t));
            finest->newest = ns / series->shape->slot_ns;
            series->first_ns = ns;
            series->last_ns = ns;
        }
        return;
    }
    move_to(series, 0, ns / series->shape->slot_ns, budget);
    merge(series, newest_slot(series, 0), noted);
    series->last_ns = ns > series->last_ns ? ns : series->last_ns;
}

/* ---- as points */

uint32_t ml_series_points_max(const struct ml_series *series) {
    uint32_t count = 1;
    for (unsigned i = 0; i < ML_SERIES_LEVELS; i++) {
        count += series->levels[i].count;
    }
    return count;
}

/* From which index on each level is used; the level above covers what lies before. Returns the
 * number of levels used. */
static unsigned
choose_levels(const struct ml_series *series, uint64_t from[static ML_SERIES_LEVELS]) {
    unsigned count = 0;
    for (unsigned i = 0; i < ML_SERIES_LEVELS && series->levels[i].count > 0; i++) {
        const struct ml_series_level *level = &series->levels[i];
        const bool has_above = i + 1 < ML_SERIES_LEVELS && series->levels[i + 1].count > 0;
        const uint64_t oldest = level->newest + 1 - level->count;
        const bool has_all = oldest <= series->first_ns / slot_ns(series, i);
        count++;
        from[i] = oldest;
        if (has_all || !has_above) {
            break;
        }
        /* The coarser slots end where this level begins, so that is a multiple. */
        from[i] = (oldest + ML_SERIES_FACTOR - 1) / ML_SERIES_FACTOR * ML_SERIES_FACTOR;
    }
    return count;
}

static bool says_the_same(const struct ml_snapshot_point *a, const struct ml_snapshot_point *b) {
    return b->least_bytes == a->last_bytes && b->most_bytes == a->last_bytes &&
           b->last_bytes == a->last_bytes && b->total_bytes == a->total_bytes &&
           b->total_blocks == a->total_blocks;
}

/* Add a point. It replaces the last one if that lies between two that say the same. */
static uint32_t
add_point(struct ml_snapshot_point *points, uint32_t count, const struct ml_snapshot_point *point) {
    if (count > 1 && says_the_same(&points[count - 1], point) &&
        says_the_same(&points[count - 2], &points[count - 1])) {
        count--;
    }
    points[count] = *point;
    return count + 1;
}

uint32_t ml_series_points(const struct ml_series *series, struct ml_snapshot_point *out_points) {
    uint64_t from[ML_SERIES_LEVELS] = {0};
    uint32_t count = 0;
    const uint64_t noted_ms = series->last_ns / NS_PER_MS + 1; /* until just after the last note */
    const unsigned levels = choose_levels(series, from);
    for (unsigned i = levels; i-- > 0;) {
        const struct ml_series_level *level = &series->levels[i];
        /* After a pause the slots behind the newest are missing: they would say the same. */
        const uint64_t below = i == 0 ? UINT64_MAX : from[i - 1] / ML_SERIES_FACTOR;
        const uint64_t end = below <= level->newest ? below : level->newest + 1;
        for (uint64_t index = from[i]; index < end; index++) {
            const uint32_t back = (uint32_t)(level->newest - index);
            const uint32_t at = (level->at + level->capacity - back) % level->capacity;
            const uint64_t *slot = slot_at(series, i, at);
            const uint64_t slot_end_ms = (index + 1) * slot_ns(series, i) / NS_PER_MS;
            struct ml_snapshot_point point = {
                .end_ms = slot_end_ms < noted_ms ? slot_end_ms : noted_ms,
                .least_bytes = slot[LEAST],
                .most_bytes = slot[MOST],
                .last_bytes = slot[LAST]};
            if (series->shape->has_totals) {
                point.total_bytes = slot[TOTAL_BYTES];
                point.total_blocks = slot[TOTAL_BLOCKS];
            }
            count = add_point(out_points, count, &point);
        }
    }
    return count;
}
