/* Live blocks that found their home full: a small table beside a live map's lines. Room: service.
 * Context: the map's thread.
 *
 * One rule: open addressing without marks for what has gone: whoever stands behind it moves up. */
#ifndef MEMLOG_SERVICE_LIVE_AWAY_H
#define MEMLOG_SERVICE_LIVE_AWAY_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/ml_status.h"
#include "service/budget.h"

struct ml_live_away_entry {
    uint64_t hash; /* 0: nothing is here */
    uint64_t rest; /* of the slot that it did not get */
};

struct ml_live_away {
    struct ml_budget *budget;
    struct ml_live_away_entry *entries;
    size_t capacity, count;
};

void ml_live_away_init(struct ml_live_away *away, struct ml_budget *budget);
void ml_live_away_fini(struct ml_live_away *away);

/* Where a search for that hash begins: the hash's middle bits, as its top ones are those of a whole
 * line. The table is not empty. */
static inline size_t ml_live_away_place(const struct ml_live_away *away, uint64_t hash) {
    return (size_t)((hash >> 11 & UINT32_MAX) * away->capacity >> 32);
}

/* How many more may come. */
static inline size_t ml_live_away_left(const struct ml_live_away *away) {
    return away->capacity - away->capacity / 4 - away->count;
}

/* Room for so many more. Errors: ML_ENV_MEMORY: all stays as it is. */
ML_NODISCARD enum ml_status ml_live_away_reserve(struct ml_live_away *away, size_t count);

/* Few are left of many, perhaps: give back what is not needed, but for room for so many more. */
void ml_live_away_shrink(struct ml_live_away *away, size_t count);

/* After a reserve. hash is not 0. */
void ml_live_away_put(struct ml_live_away *away, uint64_t hash, uint64_t rest);

/* The first entry of that hash, or the one behind `after`; NULL: none. */
struct ml_live_away_entry *
ml_live_away_find(const struct ml_live_away *away, uint64_t hash, struct ml_live_away_entry *after);

void ml_live_away_remove(struct ml_live_away *away, struct ml_live_away_entry *entry);

#endif
