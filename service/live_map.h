/* A process's live blocks: address and heap -> what is held there. Room: service. Context: the
 * session's one thread.
 *
 * One rule: 16 bytes a slot, at most 13 of 16 slots used, nothing allocated per event.
 *
 * Slots stand in lines of four, a cache line each. A block lives in the line that its hash says,
 * its home, or if that is full in the next one behind it that is not. Each line counts the blocks
 * that were turned away from it; they are looked for only where that count is not 0. So nearly
 * every search, for what is there and for what is not, sees one cache line, in the same few steps;
 * and a block that goes leaves its slot free and moves no other.
 *
 * The home is the hash scaled to the number of lines: growing, by a third, is one pass in order
 * over both tables. The hash's factor is the map's own, so that a client cannot choose addresses
 * that meet. */
#ifndef MEMLOG_SERVICE_LIVE_MAP_H
#define MEMLOG_SERVICE_LIVE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/ml_status.h"
#include "service/budget.h"

enum {
    ML_LIVE_CELL_BITS = 24, /* cells of a process; 100 bytes each make 1.6 GiB */
    ML_LIVE_CELLS_MAX = 1 << ML_LIVE_CELL_BITS,
    ML_LIVE_WIDE_BIT = ML_LIVE_CELL_BITS,
    ML_LIVE_AWAY_SHIFT = ML_LIVE_WIDE_BIT + 1, /* two bits: of the line's count, its quarter */
    ML_LIVE_BYTES_SHIFT = ML_LIVE_AWAY_SHIFT + 2,
    ML_LIVE_INLINE_BITS = 64 - ML_LIVE_BYTES_SHIFT,
    ML_LIVE_LINE_SLOTS = 4
};

#define ML_LIVE_AWAY_MASK ((uint64_t)3 << ML_LIVE_AWAY_SHIFT)

/* What stands behind an address. */
struct ml_live_block {
    uint64_t weight_bytes;
    uint64_t weight_blocks;
    uint64_t size_bytes; /* weight_bytes, or less when sampled */
    uint32_t cell;
    bool sampled; /* its process knows that it was recorded (client/sampled_set.h) */
};

struct ml_live_slot {
    uint64_t key; /* address | heap << 56; 0: empty */
    /* cell | away << 25 | bytes << 27, or with bit 24 set cell | away << 25 | index into
     * wide << 27. `away` is the line's, whether the slot is used or not. */
    uint64_t value;
};

struct ml_live_line {
    struct ml_live_slot slots[ML_LIVE_LINE_SLOTS];
};

/* A block that does not fit a slot: sampled, or 128 GiB and more. */
struct ml_live_wide {
    uint64_t weight_bytes;
    uint64_t weight_blocks; /* of a free entry: the next free one's index + 1 */
    uint64_t size_bytes : 63;
    uint64_t sampled : 1;
};

struct ml_live_map {
    struct ml_budget *budget;
    struct ml_live_line *lines;
    size_t lines_count; /* 0 before the first block */
    size_t count;
    size_t count_max;    /* one more block needs more lines */
    uint64_t factor;     /* odd; of the hash */
    uint32_t low_rounds; /* calls of ml_live_map_trim in a row that found few blocks */
    struct ml_live_wide *wide;
    uint32_t wide_capacity;
    uint32_t wide_used; /* entries ever used */
    uint64_t wide_free; /* first free entry + 1; 0: none */
};

/* Of two words. */
__extension__ typedef unsigned __int128 ml_live_product;

static inline uint64_t ml_live_key(uint64_t address, unsigned heap) {
    return address | (uint64_t)heap << 56;
}

/* `seed` should be hard to guess for a client. */
void ml_live_map_init(struct ml_live_map *map, struct ml_budget *budget, uint64_t seed);
void ml_live_map_fini(struct ml_live_map *map);

/* The key's hash, which all calls about the key take: it is good for as long as the map is. */
static inline uint64_t ml_live_map_hash(const struct ml_live_map *map, uint64_t key) {
    uint64_t hash = key * map->factor;
    hash ^= hash >> 32;
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* Where a search for that hash begins. The map has had a block. */
static inline struct ml_live_line *ml_live_map_home(const struct ml_live_map *map, uint64_t hash) {
    return map->lines + (size_t)(((ml_live_product)hash * map->lines_count) >> 64);
}

/* Bring what a search for that hash will see into the cache. */
static inline void ml_live_map_prefetch(const struct ml_live_map *map, uint64_t hash) {
    __builtin_prefetch(ml_live_map_home(map, hash), 1);
}

/* The slots of a line that hold that key (0: nothing), a bit each. */
static inline unsigned ml_live_line_match(const struct ml_live_line *line, uint64_t key) {
    return (unsigned)(line->slots[0].key == key) | (unsigned)(line->slots[1].key == key) << 1 |
           (unsigned)(line->slots[2].key == key) << 2 | (unsigned)(line->slots[3].key == key) << 3;
}

/* The slot of a key in its home, NULL if it is not there. */
static inline struct ml_live_slot *
ml_live_map_at_home(const struct ml_live_map *map, uint64_t key, uint64_t hash) {
    struct ml_live_line *home = ml_live_map_home(map, hash);
    const unsigned found = ml_live_line_match(home, key);
    return found == 0 ? NULL : &home->slots[__builtin_ctz(found)];
}

/* Room for so many more blocks, so that their puts cannot fail, and slots stay where they are
 * meanwhile. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_live_map_reserve_more(struct ml_live_map *map, size_t count);

static inline enum ml_status ml_live_map_reserve(struct ml_live_map *map, size_t count) {
    return map->count_max - map->count >= count ? ML_OK : ml_live_map_reserve_more(map, count);
}

/* Room for one more block of a weight that does not fit a slot. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_live_map_reserve_wide(struct ml_live_map *map);

/* Put a block there, after both reserves. key != 0. True if there was one, which is then in
 * *out_old and gone. */
bool ml_live_map_put(
    struct ml_live_map *map,
    uint64_t key,
    uint64_t hash,
    const struct ml_live_block *block,
    struct ml_live_block *out_old
);

/* Take a block out. False if it is not there. */
bool ml_live_map_remove(
    struct ml_live_map *map, uint64_t key, uint64_t hash, struct ml_live_block *out_block
);

/* A round is over: give memory back when far fewer blocks live than once did, for some rounds. */
void ml_live_map_trim(struct ml_live_map *map);

/* Walk: the next used slot at or behind *cursor (start with 0). False at the end. */
bool ml_live_map_next(
    const struct ml_live_map *map,
    size_t *cursor,
    uint64_t *out_key,
    struct ml_live_block *out_block
);

/* For tests: every block is found from its home, counts agree. */
bool ml_live_map_check(const struct ml_live_map *map);

/* ---- the usual cases, in line */

/* Put a block of fewer than 2^32 bytes and of weight 1 there, after ml_live_map_reserve, if its
 * home has room and nobody was ever turned away there. False if that is not so: nothing has changed
 * then, and ml_live_map_put will do. */
static inline bool ml_live_map_put_at_home(
    struct ml_live_map *map, uint64_t key, uint64_t hash, uint32_t bytes, uint32_t cell
) {
    struct ml_live_slot *const slots = ml_live_map_home(map, hash)->slots;
    struct ml_live_slot *empty = NULL;
    uint64_t values = 0;
    bool there = false;
    for (unsigned i = 0; i < ML_LIVE_LINE_SLOTS; i++) {
        empty = slots[i].key == 0 ? &slots[i] : empty;
        there |= slots[i].key == key;
        values |= slots[i].value;
    }
    if (empty == NULL || there || (values & ML_LIVE_AWAY_MASK) != 0) {
        return false;
    }
    *empty =
        (struct ml_live_slot){.key = key, .value = cell | (uint64_t)bytes << ML_LIVE_BYTES_SHIFT};
    map->count++;
    return true;
}

/* Empty a slot that holds a block in its home, not a wide one. */
static inline void ml_live_map_empty_home(struct ml_live_map *map, struct ml_live_slot *slot) {
    slot->key = 0;
    slot->value &= ML_LIVE_AWAY_MASK;
    map->count--;
}

static inline uint32_t ml_live_slot_cell(const struct ml_live_slot *slot) {
    return (uint32_t)(slot->value & (ML_LIVE_CELLS_MAX - 1));
}

static inline bool ml_live_slot_is_wide(const struct ml_live_slot *slot) {
    return (slot->value >> ML_LIVE_WIDE_BIT & 1) != 0;
}

#endif
