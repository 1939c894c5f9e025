#include "service/live_away.h"

#include <stdbool.h>

enum { CAPACITY_MIN = 16 };

void ml_live_away_init(struct ml_live_away *away, struct ml_budget *budget) {
    *away = (struct ml_live_away){.budget = budget};
}

void ml_live_away_fini(struct ml_live_away *away) {
    ml_budget_free_table(away->budget, away->entries, away->capacity * sizeof(*away->entries));
    *away = (struct ml_live_away){.budget = away->budget};
}

static enum ml_status move(struct ml_live_away *away, size_t capacity) {
    struct ml_live_away_entry *entries = NULL;
    if (capacity <= UINT32_MAX) {
        entries = ml_budget_new_table(away->budget, capacity * sizeof(*entries));
    }
    if (entries == NULL) {
        return ML_ENV_MEMORY;
    }
    struct ml_live_away old = *away;
    away->entries = entries;
    away->capacity = capacity;
    away->count = 0;
    for (size_t i = 0; i < old.capacity; i++) {
        if (old.entries[i].hash != 0) {
            ml_live_away_put(away, old.entries[i].hash, old.entries[i].rest);
        }
    }
    ml_live_away_fini(&old);
    return ML_OK;
}

/* Two thirds full with so many: searches stay on a cache line or two. */
static size_t capacity_for(size_t count) {
    return count + count / 2 + CAPACITY_MIN;
}

enum ml_status ml_live_away_reserve(struct ml_live_away *away, size_t count) {
    if (ml_live_away_left(away) >= count) {
        return ML_OK;
    }
    return move(away, capacity_for(away->count + away->count / 4 + count));
}

void ml_live_away_shrink(struct ml_live_away *away, size_t count) {
    const size_t wanted = capacity_for(away->count + count);
    if (wanted < away->capacity / 4 * 3) {
        const enum ml_status status = move(away, wanted);
        (void)status; /* no memory to save memory with: it stays as it is */
    }
}

static inline size_t next(const struct ml_live_away *away, size_t place) {
    return place + 1 == away->capacity ? 0 : place + 1;
}

void ml_live_away_put(struct ml_live_away *away, uint64_t hash, uint64_t rest) {
    size_t place = ml_live_away_place(away, hash);
    while (away->entries[place].hash != 0) {
        place = next(away, place);
    }
    away->entries[place] = (struct ml_live_away_entry){.hash = hash, .rest = rest};
    away->count++;
}

struct ml_live_away_entry *ml_live_away_find(
    const struct ml_live_away *away, uint64_t hash, struct ml_live_away_entry *after
) {
    if (away->capacity == 0) {
        return NULL;
    }
    size_t place = after == NULL ? ml_live_away_place(away, hash)
                                 : next(away, (size_t)(after - away->entries));
    while (away->entries[place].hash != 0 && away->entries[place].hash != hash) {
        place = next(away, place);
    }
    return away->entries[place].hash == 0 ? NULL : &away->entries[place];
}

/* Whether the entry at `place`, whose search begins at `home`, may stand at `hole`, before it. */
static bool may_move(size_t home, size_t hole, size_t place) {
    return hole < place ? home <= hole || home > place : home <= hole && home > place;
}

void ml_live_away_remove(struct ml_live_away *away, struct ml_live_away_entry *entry) {
    size_t hole = (size_t)(entry - away->entries);
    for (size_t place = next(away, hole); away->entries[place].hash != 0;
         place = next(away, place)) {
        if (may_move(ml_live_away_place(away, away->entries[place].hash), hole, place)) {
            away->entries[hole] = away->entries[place];
            hole = place;
        }
    }
    away->entries[hole].hash = 0;
    away->count--;
}
