/* A process's live blocks: address and heap -> what is held there. Room: service. Context: the
 * session's one thread.
 *
 * One rule: 16 bytes a slot, at most 13 of 16 slots used, nothing allocated per event.
 *
 * Open addressing with linear probing; a freed slot is closed by shifting its followers back, so
 * there are no tombstones and lookups stay short for ever. A block's home is its hash scaled to the
 * number of slots: slots are nearly in hash order, and growing (by half) is one pass in order over
 * both tables. The hash's factors are the map's own, so that a client cannot choose addresses that
 * meet. */
#ifndef MEMLOG_SERVICE_LIVE_MAP_H
#define MEMLOG_SERVICE_LIVE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/ml_status.h"
#include "service/budget.h"

enum {
    ML_LIVE_CELL_BITS = 26, /* cells of a process; 96 bytes each make 6 GiB */
    ML_LIVE_CELLS_MAX = 1 << ML_LIVE_CELL_BITS
};

/* What stands behind an address. */
struct ml_live_block {
    uint64_t weight_bytes;
    uint64_t weight_blocks;
    uint32_t cell;
};

struct ml_live_slot {
    uint64_t key;   /* address | heap << 56; 0: empty */
    uint64_t value; /* cell | bytes << 27, or with bit 26 set cell | index into wide << 27 */
};

/* A block whose weights do not fit a slot: sampled, or 128 GiB and more. */
struct ml_live_wide {
    uint64_t weight_bytes;
    uint64_t weight_blocks; /* of a free entry: the next free one's index + 1 */
};

struct ml_live_map {
    struct ml_budget *budget;
    struct ml_live_slot *slots;
    size_t capacity; /* slots; 0 before the first block */
    size_t count;
    uint64_t factor; /* odd; of the hash */
    struct ml_live_wide *wide;
    uint32_t wide_capacity;
    uint32_t wide_used; /* entries ever used */
    uint64_t wide_free; /* first free entry + 1; 0: none */
};

static inline uint64_t ml_live_key(uint64_t address, unsigned heap) {
    return address | (uint64_t)heap << 56;
}

/* `seed` should be hard to guess for a client. */
void ml_live_map_init(struct ml_live_map *map, struct ml_budget *budget, uint64_t seed);
void ml_live_map_fini(struct ml_live_map *map);

/* Room for one more block, so that the next put cannot fail. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_live_map_reserve(struct ml_live_map *map);

/* Put a block there, after ml_live_map_reserve. key != 0. True if there was one, which is then in
 * *out_old and gone. */
bool ml_live_map_put(
    struct ml_live_map *map,
    uint64_t key,
    const struct ml_live_block *block,
    struct ml_live_block *out_old
);

/* Take a block out. False if it is not there. */
bool ml_live_map_remove(struct ml_live_map *map, uint64_t key, struct ml_live_block *out_block);

/* Give memory back when far fewer blocks live than once did. */
void ml_live_map_trim(struct ml_live_map *map);

/* Bring the slot of a key into the cache. */
void ml_live_map_prefetch(const struct ml_live_map *map, uint64_t key);

/* Walk: the next used slot at or behind *cursor (start with 0). False at the end. */
bool ml_live_map_next(
    const struct ml_live_map *map,
    size_t *cursor,
    uint64_t *out_key,
    struct ml_live_block *out_block
);

/* For tests: every block is found from its home, counts agree. */
bool ml_live_map_check(const struct ml_live_map *map);

#endif
