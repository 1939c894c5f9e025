#include "service/heap/live_overflow.h"

enum {
    BUCKET = ML_LIVE_OVERFLOW_BUCKET,
    /* Places of the old table that are moved per entry reserved, and per call at least. The old
     * table has less than twice as many places as entries, and the new one has room for a quarter
     * more entries. */
    STEP_EACH = 16,
    STEP_LEAST = 1024
};

static void free_table(struct ml_budget *budget, struct ml_live_overflow_table *table) {
    ml_budget_free_table(budget, table->entries, table->capacity * sizeof(*table->entries));
    *table = (struct ml_live_overflow_table){.entries = NULL};
}

void ml_live_overflow_init(struct ml_live_overflow *overflow, struct ml_budget *budget) {
    *overflow = (struct ml_live_overflow){.budget = budget};
}

void ml_live_overflow_fini(struct ml_live_overflow *overflow) {
    free_table(overflow->budget, &overflow->now);
    free_table(overflow->budget, &overflow->before);
    ml_live_overflow_init(overflow, overflow->budget);
}

uint64_t ml_live_overflow_bytes(const struct ml_live_overflow *overflow) {
    return (overflow->now.capacity + overflow->before.capacity) * sizeof(*overflow->now.entries);
}

/* ---- one table */

static inline size_t next(const struct ml_live_overflow_table *table, size_t place) {
    return place + 1 == table->capacity ? 0 : place + 1;
}

static inline size_t previous(const struct ml_live_overflow_table *table, size_t place) {
    return (place == 0 ? table->capacity : place) - 1;
}

static void put(struct ml_live_overflow_table *table, uint64_t hash, uint64_t rest) {
    size_t place = ml_live_overflow_place(table, hash);
    while (table->entries[place].hash != 0) {
        place = next(table, place);
    }
    table->entries[place] = (struct ml_live_overflow_entry){.hash = hash, .rest = rest};
    table->count++;
}

/* The first of that hash from `place` on. */
static struct ml_live_overflow_entry *
find_from(const struct ml_live_overflow_table *table, uint64_t hash, size_t place) {
    while (table->entries[place].hash != 0 && table->entries[place].hash != hash) {
        place = next(table, place);
    }
    return table->entries[place].hash == 0 ? NULL : &table->entries[place];
}

static struct ml_live_overflow_entry *
find(const struct ml_live_overflow_table *table, uint64_t hash) {
    return table->count == 0 ? NULL : find_from(table, hash, ml_live_overflow_place(table, hash));
}

/* Whether the entry at `place`, whose search begins at `home`, may stand at `hole`, before it. */
static bool may_move(size_t home, size_t hole, size_t place) {
    return hole < place ? home <= hole || home > place : home <= hole && home > place;
}

static void empty(struct ml_live_overflow_table *table, size_t hole) {
    for (size_t place = next(table, hole); table->entries[place].hash != 0;
         place = next(table, place)) {
        if (may_move(ml_live_overflow_place(table, table->entries[place].hash), hole, place)) {
            table->entries[hole] = table->entries[place];
            hole = place;
        }
    }
    table->entries[hole].hash = 0;
    table->count--;
}

/* ---- from one table to the next */

/* Three quarters are used at most: searches stay on a cache line or two. */
static size_t room_of(const struct ml_live_overflow *overflow) {
    return overflow->now.capacity - overflow->now.capacity / 4 - ml_live_overflow_count(overflow);
}

/* Two thirds full with so many. */
static size_t capacity_for(size_t count) {
    return (count + count / 2 + BUCKET) / BUCKET * BUCKET;
}

/* Move the entries in the next `count` places. Removing an entry moves later ones up, so a place is
 * done when it is empty. Entries that wrapped around to the front move with the first places. */
static void step(struct ml_live_overflow *overflow, size_t count) {
    struct ml_live_overflow_table *const before = &overflow->before;
    for (; count > 0 && before->count > 0; count--) {
        const struct ml_live_overflow_entry entry = before->entries[overflow->emptied];
        if (entry.hash == 0) {
            overflow->emptied++;
            continue;
        }
        empty(before, overflow->emptied);
        put(&overflow->now, entry.hash, entry.rest);
        overflow->moved++;
    }
    if (before->count == 0) {
        free_table(overflow->budget, before);
    }
}

/* Another table. Errors: ML_ENV_MEMORY. */
static enum ml_status begin(struct ml_live_overflow *overflow, size_t capacity) {
    struct ml_live_overflow_entry *entries = NULL;
    if (capacity <= UINT32_MAX) {
        entries = ml_budget_new_table(overflow->budget, capacity * sizeof(*entries));
    }
    if (entries == NULL) {
        return ML_ENV_MEMORY;
    }
    step(overflow, SIZE_MAX); /* it is done by now, unless very many were asked for at once */
    overflow->before = overflow->now;
    overflow->now = (struct ml_live_overflow_table){.entries = entries, .capacity = capacity};
    overflow->emptied = 0;
    if (overflow->before.count == 0) {
        free_table(overflow->budget, &overflow->before);
    }
    return ML_OK;
}

enum ml_status ml_live_overflow_reserve(struct ml_live_overflow *overflow, size_t count) {
    if (overflow->room >= count) {
        return ML_OK;
    }
    if (room_of(overflow) < count) {
        const size_t present = ml_live_overflow_count(overflow);
        const enum ml_status status = begin(overflow, capacity_for(present + present / 4 + count));
        if (status != ML_OK) {
            return status;
        }
    }
    if (overflow->before.capacity > 0) {
        step(overflow, count * STEP_EACH + STEP_LEAST);
    }
    /* As long as there is more to do, the next reserve comes here again. */
    overflow->room = overflow->before.count > 0 ? count : room_of(overflow);
    return ML_OK;
}

void ml_live_overflow_shrink(struct ml_live_overflow *overflow, size_t count) {
    const size_t wanted = capacity_for(ml_live_overflow_count(overflow) + count);
    if (overflow->before.count == 0 && wanted < overflow->now.capacity / 4 * 3 &&
        begin(overflow, wanted) == ML_OK) {
        overflow->room = 0;
    }
}

/* ---- entries */

void ml_live_overflow_put(struct ml_live_overflow *overflow, uint64_t hash, uint64_t rest) {
    put(&overflow->now, hash, rest);
    overflow->room--;
}

static bool
is_in(const struct ml_live_overflow_table *table, const struct ml_live_overflow_entry *entry) {
    return table->capacity > 0 && entry >= table->entries &&
           entry < table->entries + table->capacity;
}

struct ml_live_overflow_entry *ml_live_overflow_find(
    const struct ml_live_overflow *overflow, uint64_t hash, struct ml_live_overflow_entry *after
) {
    struct ml_live_overflow_entry *found = NULL;
    if (after == NULL) {
        found = find(&overflow->now, hash);
    } else {
        const struct ml_live_overflow_table *table =
            is_in(&overflow->now, after) ? &overflow->now : &overflow->before;
        found = find_from(table, hash, next(table, (size_t)(after - table->entries)));
        if (table == &overflow->before) {
            return found;
        }
    }
    return found != NULL ? found : find(&overflow->before, hash);
}

void ml_live_overflow_remove(
    struct ml_live_overflow *overflow, struct ml_live_overflow_entry *entry
) {
    struct ml_live_overflow_table *table =
        is_in(&overflow->now, entry) ? &overflow->now : &overflow->before;
    empty(table, (size_t)(entry - table->entries));
    overflow->room++;
}

/* In one table, from the first bucket of these hashes to the last, and on to the end of searches
 * that begin there. */
static size_t visit(
    struct ml_live_overflow_table *table,
    uint64_t from,
    uint64_t to,
    bool (*takes)(void *context, const struct ml_live_overflow_entry *entry),
    void *context
) {
    size_t taken = 0;
    if (table->count == 0) {
        return 0;
    }
    size_t place = ml_live_overflow_place(table, from << 32) / BUCKET * BUCKET;
    size_t most = (ml_live_overflow_place(table, (to - 1) << 32) / BUCKET + 1) * BUCKET - place;
    /* Start behind an empty place, so that a removal moves no entry that was shown already. */
    for (size_t before = previous(table, place); table->entries[before].hash != 0;
         before = previous(table, before)) {
        place = before;
        most++;
    }
    for (size_t seen = 0;
         seen < table->capacity && (seen < most || table->entries[place].hash != 0);) {
        const struct ml_live_overflow_entry *entry = &table->entries[place];
        const uint64_t upper = entry->hash >> 32;
        if (entry->hash != 0 && upper >= from && upper < to && takes(context, entry)) {
            empty(table, place); /* another entry may have moved here */
            taken++;
            continue;
        }
        place = next(table, place);
        seen++;
    }
    return taken;
}

void ml_live_overflow_visit(
    struct ml_live_overflow *overflow,
    uint64_t from,
    uint64_t to,
    bool (*takes)(void *context, const struct ml_live_overflow_entry *entry),
    void *context
) {
    overflow->room += visit(&overflow->now, from, to, takes, context);
    overflow->room += visit(&overflow->before, from, to, takes, context);
}
