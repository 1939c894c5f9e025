/* Live blocks that found their home full: a small table beside a live map's lines. Room: service.
 * Context: the map's thread.
 *
 * One rule: open addressing without tombstones: removing an entry moves later ones up.
 *
 * Entries are roughly in the order of their hashes, as lines are: the overflow blocks of a part of
 * the map lie in one part of the table. A full table gets a larger successor, to which the entries
 * move in steps, at each reserve. Meanwhile both are searched. */
#ifndef MEMLOG_SERVICE_HEAP_LIVE_OVERFLOW_H
#define MEMLOG_SERVICE_HEAP_LIVE_OVERFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/heap/prefetch.h"
#include "service/limits/budget.h"

enum {
    ML_LIVE_OVERFLOW_BUCKET = 64 /* entries in no order among each other; a power of two */
};

struct ml_live_overflow_entry {
    uint64_t hash; /* 0: nothing is here */
    uint64_t rest; /* of the slot that it did not get */
};

struct ml_live_overflow_table {
    struct ml_live_overflow_entry *entries;
    size_t capacity, count; /* the former in whole buckets */
};

struct ml_live_overflow {
    struct ml_budget *budget;
    struct ml_live_overflow_table now;
    struct ml_live_overflow_table
        before; /* the former one, of which its first `emptied` are empty */
    size_t emptied;
    size_t room;    /* entries that may be added before a reserve */
    uint64_t moved; /* from one table to the next, so far */
};

void ml_live_overflow_init(struct ml_live_overflow *overflow, struct ml_budget *budget);
void ml_live_overflow_fini(struct ml_live_overflow *overflow);

/* The bytes that it takes. */
uint64_t ml_live_overflow_bytes(const struct ml_live_overflow *overflow);

static inline size_t ml_live_overflow_count(const struct ml_live_overflow *overflow) {
    return overflow->now.count + overflow->before.count;
}

/* Where a search for that hash begins: the bucket by the hash's top bits, which are those of a
 * whole line, the place in it by others. The table is not empty. */
static inline size_t
ml_live_overflow_place(const struct ml_live_overflow_table *table, uint64_t hash) {
    const size_t buckets = table->capacity / ML_LIVE_OVERFLOW_BUCKET;
    return (size_t)((hash >> 32) * buckets >> 32) * ML_LIVE_OVERFLOW_BUCKET +
           (hash >> 11 & (ML_LIVE_OVERFLOW_BUCKET - 1));
}

/* Prefetch what a search for that hash will read first. */
static inline void
ml_live_overflow_prefetch(const struct ml_live_overflow *overflow, uint64_t hash) {
    ml_prefetch(&overflow->now.entries[ml_live_overflow_place(&overflow->now, hash)]);
}

/* Room for so many more, in steps of a few hundred entries when `count` is small. Errors:
 * ML_ENV_MEMORY: all entries are as they were. */
ML_NODISCARD enum ml_status
ml_live_overflow_reserve(struct ml_live_overflow *overflow, size_t count);

/* Give back unneeded memory if few entries are left of many, but keep room for so many more. */
void ml_live_overflow_shrink(struct ml_live_overflow *overflow, size_t count);

/* After a reserve. hash is not 0. */
void ml_live_overflow_put(struct ml_live_overflow *overflow, uint64_t hash, uint64_t rest);

/* The first entry of that hash, or the one behind `after`; NULL: none. */
struct ml_live_overflow_entry *ml_live_overflow_find(
    const struct ml_live_overflow *overflow, uint64_t hash, struct ml_live_overflow_entry *after
);

void ml_live_overflow_remove(
    struct ml_live_overflow *overflow, struct ml_live_overflow_entry *entry
);

/* Show every entry whose hash's upper half is in [from, to), and remove those for which `takes`
 * returns true. `takes` must not change this table. */
void ml_live_overflow_visit(
    struct ml_live_overflow *overflow,
    uint64_t from,
    uint64_t to,
    bool (*takes)(void *context, const struct ml_live_overflow_entry *entry),
    void *context
);

#endif
