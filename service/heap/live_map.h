/* A process's live blocks: address and heap -> cell and size. Room: service. Context: whoever
 * applies the client's events; a map is only ever in one thread's hands.
 *
 * One rule: 12 bytes a slot, on average at most 3.43 of the five slots of a cache line used, no
 * allocation per event.
 *
 * The hash of a usual block's key is a bijection of its 53 bits. Its top bits select the block's
 * line, its home. The slot stores the hash in place of the address. So growing never hashes again:
 * a home is the hash scaled to the number of lines, and a quarter more lines are filled in place,
 * in order from the last one down. Each map has its own hash factor, so that a client cannot choose
 * colliding addresses.
 *
 * Growing is done in steps, some lines at each reserve (live_resize.c), so that no call moves a
 * whole table. Meanwhile `split` tells where a block is: hashes below it have their home among the
 * fewer lines, the others among the more. Shrinking does the same from the front. Either may turn
 * into the other at any step.
 *
 * Lines come in pairs, which the processor fetches together. A block whose home is full goes to the
 * other line of the pair; if that is full too, to a small overflow table (live_overflow.h). Each
 * line counts both, and a search goes further only if that count is not 0. So nearly every search,
 * hit or miss, reads one cache line, in the same few steps. Removing a block moves no other. */
#ifndef MEMLOG_SERVICE_HEAP_LIVE_MAP_H
#define MEMLOG_SERVICE_HEAP_LIVE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ipc/wire/ml_status.h"
#include "service/heap/live_overflow.h"
#include "service/heap/prefetch.h"
#include "service/limits/budget.h"

enum {
    ML_LIVE_CELL_BITS = 24, /* cells of a process; 100 bytes each make 1.6 GiB */
    ML_LIVE_CELLS_MAX = 1 << ML_LIVE_CELL_BITS,
    ML_LIVE_HASH_SHIFT = 11, /* low bits of a hash that are unused */
    ML_LIVE_LOW_BITS = 32,
    ML_LIVE_HIGH_BITS = 64 - ML_LIVE_HASH_SHIFT - ML_LIVE_LOW_BITS,
    ML_LIVE_WIDE_BIT = ML_LIVE_CELL_BITS + ML_LIVE_HIGH_BITS,
    ML_LIVE_BYTES_SHIFT = ML_LIVE_WIDE_BIT + 1,
    ML_LIVE_INLINE_BITS = 64 - ML_LIVE_BYTES_SHIFT,
    ML_LIVE_LINE_SLOTS = 5,
    ML_LIVE_LARGE_LINES = 256 << 10, /* 16 MiB */
    ML_LIVE_USED_MASK = (1 << ML_LIVE_LINE_SLOTS) - 1,
    /* In a hash: the key does not follow from the hash, a wide entry has it. */
    ML_LIVE_ODD = 1
};

/* Blocks of fewer bytes fit a slot: 256 KiB. For a larger one the extra cost is negligible. */
#define ML_LIVE_INLINE_MAX ((uint64_t)1 << ML_LIVE_INLINE_BITS)

/* Of a key: heap; bits that must be 0 for the hash to hold the whole key: addresses below 2^48,
 * multiples of 8. */
#define ML_LIVE_HEAP_SHIFT 56
#define ML_LIVE_HEAP_MASK ((uint64_t)0xff << ML_LIVE_HEAP_SHIFT)
#define ML_LIVE_ODD_MASK (((uint64_t)0xff << 48) | 7)

/* Of a slot's rest: the bits that identify the block, unless it is a wide one. */
#define ML_LIVE_SAME_MASK                                                                          \
    ((((uint64_t)1 << ML_LIVE_HIGH_BITS) - 1) << ML_LIVE_CELL_BITS | (uint64_t)1                   \
                                                                         << ML_LIVE_WIDE_BIT)

/* What stands behind an address. */
struct ml_live_block {
    uint64_t weight_bytes;
    uint64_t weight_blocks;
    uint64_t size_bytes; /* weight_bytes, or less when sampled */
    uint32_t cell;
    bool sampled; /* its client has it in its sampled set (client/sampling/sampled_set.h) */
};

/* A bit for each used slot | number of its own in the other line << 5 | number in the overflow
 * table << 8. */
enum {
    ML_LIVE_IN_OTHER = 1 << ML_LIVE_LINE_SLOTS,
    ML_LIVE_IN_OTHER_MASK = 7 << ML_LIVE_LINE_SLOTS,
    ML_LIVE_TURNED_AWAY = 1 << 8
};

/* A slot is `low`, the hash's bits 11 to 42, and `rest`: cell | the hash's bits 43 to 63 << 24 |
 * bytes << 46; or with bit 45 set, an index into `wide` in the place of cell (its low half) and
 * bytes. An empty one is 0: the key 0 has the hash 0, and no other has. */
struct ml_live_line {
    uint32_t state;
    uint32_t low[ML_LIVE_LINE_SLOTS];
    uint64_t rest[ML_LIVE_LINE_SLOTS];
};

_Static_assert(sizeof(struct ml_live_line) == 64, "a cache line");

/* A block that does not fit a slot: sampled, of 256 KiB and more, or at an odd address. */
struct ml_live_wide {
    uint64_t key;
    uint64_t weight_bytes;
    uint64_t weight_blocks; /* of a free entry: the next free one's index + 1 */
    uint64_t size_bytes : 63;
    uint64_t sampled : 1;
    uint32_t cell;
};

enum ml_live_change { ML_LIVE_SETTLED, ML_LIVE_GROWING, ML_LIVE_SHRINKING };

/* The end of `split`: all hashes are below it. */
#define ML_LIVE_SPLIT_END ((uint64_t)1 << 32)

struct ml_live_map {
    struct ml_budget *budget;
    struct ml_live_line *lines;
    size_t lines_count; /* 0 before the first block; of hashes whose upper half is >= split */
    size_t few_count;   /* of those below it; <= lines_count */
    uint64_t split;     /* 0 when settled */
    size_t lines_capacity;
    size_t count;
    size_t count_max; /* one more block needs a reserve: more lines, or a step towards them */
    enum ml_live_change change;
    uint32_t step_lines; /* lines that a step of growing moves, when few blocks are asked for */
    uint64_t moved;      /* blocks that growing and shrinking have looked at, so far */
    uint64_t factor;     /* odd; of the hash */
    uint32_t low_rounds; /* calls of ml_live_map_trim in a row that found few blocks */
    bool closed;         /* empty for good: it refuses every block */
    struct ml_live_overflow overflow;
    struct ml_live_wide *wide;
    uint32_t wide_capacity;
    uint32_t wide_used; /* entries ever used */
    uint64_t wide_free; /* first free entry + 1; 0: none */
};

static inline uint64_t ml_live_key(uint64_t address, unsigned heap) {
    return address | (uint64_t)heap << ML_LIVE_HEAP_SHIFT;
}

/* `seed` should be hard to guess for a client. */
void ml_live_map_init(struct ml_live_map *map, struct ml_budget *budget, uint64_t seed);
void ml_live_map_fini(struct ml_live_map *map);

/* Drop all blocks, and refuse more: ML_ENV_MEMORY. */
void ml_live_map_close(struct ml_live_map *map);

/* The bytes that it takes. */
uint64_t ml_live_map_bytes(const struct ml_live_map *map);

/* The bytes that it takes more when it has so many more blocks that fit slots: to an eighth. */
uint64_t ml_live_map_more_bytes(const struct ml_live_map *map, size_t blocks);

/* The hash of a key that its hash does not wholly hold. */
uint64_t ml_live_map_odd_hash(const struct ml_live_map *map, uint64_t key);

/* The key's hash, which all calls about the key take; valid for the map's life. */
static inline uint64_t ml_live_map_hash(const struct ml_live_map *map, uint64_t key) {
    if ((key & ML_LIVE_ODD_MASK) != 0) {
        return ml_live_map_odd_hash(map, key);
    }
    /* Each step is invertible: different keys have different hashes. */
    uint64_t hash = ((key & ML_LIVE_HEAP_MASK) + (key << 8)) * map->factor;
    hash ^= hash >> 27 & UINT64_MAX << ML_LIVE_HASH_SHIFT;
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* A block's home among so many lines. */
static inline size_t ml_live_home(uint64_t hash, size_t lines_count) {
    return (size_t)((hash >> 32) * lines_count >> 32);
}

/* The home's number at present. */
static inline size_t ml_live_map_home_index(const struct ml_live_map *map, uint64_t hash) {
    return ml_live_home(hash, hash >> 32 < map->split ? map->few_count : map->lines_count);
}

/* The map has had a block. */
static inline struct ml_live_line *ml_live_map_home(const struct ml_live_map *map, uint64_t hash) {
    return map->lines + ml_live_map_home_index(map, hash);
}

/* The other line of its pair. */
static inline struct ml_live_line *
ml_live_map_other(const struct ml_live_map *map, const struct ml_live_line *line) {
    return map->lines + ((size_t)(line - map->lines) ^ 1);
}

/* The same by where it is: the lines begin at the first one of a pair of cache lines. */
static inline struct ml_live_line *ml_live_line_beside(const struct ml_live_line *line) {
    return (struct ml_live_line *)((uintptr_t)line ^ sizeof(*line));
}

static inline uint32_t ml_live_low(uint64_t hash) {
    return (uint32_t)(hash >> ML_LIVE_HASH_SHIFT);
}

static inline uint64_t ml_live_high(uint64_t hash) {
    return hash >> (ML_LIVE_HASH_SHIFT + ML_LIVE_LOW_BITS) << ML_LIVE_CELL_BITS;
}

/* The slots with that low part, a bit each: of the first four at once where the processor compares
 * four at once, as every x86-64 does. */
static inline unsigned ml_live_line_match(const struct ml_live_line *line, uint32_t low) {
    const unsigned last = (unsigned)(line->low[4] == low) << 4;
#ifdef __SSE2__
    typedef int four __attribute__((vector_size(16)));
    typedef float four_float __attribute__((vector_size(16)));
    four lows;
    memcpy(&lows, line->low, sizeof(lows));
    const int one = (int)low;
    const four same = lows == (four){one, one, one, one};
    return (unsigned)__builtin_ia32_movmskps((four_float)same) | last;
#else
    return (unsigned)(line->low[0] == low) | (unsigned)(line->low[1] == low) << 1 |
           (unsigned)(line->low[2] == low) << 2 | (unsigned)(line->low[3] == low) << 3 | last;
#endif
}

/* Whether that slot, one of those, holds the block of that hash, which is not a wide one. */
static inline bool
ml_live_line_holds(const struct ml_live_line *line, unsigned slot, uint64_t hash) {
    return (hash & ML_LIVE_ODD) == 0 &&
           ((line->rest[slot] ^ ml_live_high(hash)) & ML_LIVE_SAME_MASK) == 0;
}

/* Whether some of its own are in the other line or in the overflow table. */
static inline bool ml_live_line_lends(const struct ml_live_line *line) {
    return (line->state & ML_LIVE_IN_OTHER_MASK) != 0;
}

static inline bool ml_live_line_has_overflow(const struct ml_live_line *line) {
    return line->state >= ML_LIVE_TURNED_AWAY;
}

/* Whether its lines exceed the caches, so that prefetching pays for its unpredictable branches. */
static inline bool ml_live_map_is_large(const struct ml_live_map *map) {
    return map->lines_count > ML_LIVE_LARGE_LINES;
}

/* Prefetch what a search for that hash will read beyond its home. */
static inline void ml_live_map_prefetch_elsewhere(
    const struct ml_live_map *map, const struct ml_live_line *home, uint64_t hash
) {
    if (home->state >= ML_LIVE_USED_MASK) {
        ml_prefetch(ml_live_map_other(map, home));
        if (ml_live_line_has_overflow(home)) {
            ml_live_overflow_prefetch(&map->overflow, hash);
        }
    }
}

static inline uint32_t ml_live_rest_cell(uint64_t rest) {
    return (uint32_t)(rest & (ML_LIVE_CELLS_MAX - 1));
}

static inline uint64_t ml_live_rest_bytes(uint64_t rest) {
    return rest >> ML_LIVE_BYTES_SHIFT;
}

/* Room for so many more blocks, so that their puts cannot fail, and lines stay where they are
 * meanwhile. Its work is bounded by `count`: eight lines each, or step_lines if that is more, and a
 * few overflow entries. A small table is grown whole.
 * Errors: ML_ENV_MEMORY: all blocks are as they were. */
ML_NODISCARD enum ml_status ml_live_map_reserve_more(struct ml_live_map *map, size_t count);

static inline enum ml_status ml_live_map_reserve(struct ml_live_map *map, size_t count) {
    return map->count_max - map->count >= count && map->overflow.room >= count
               ? ML_OK
               : ml_live_map_reserve_more(map, count);
}

/* Whether one more needs no reserve; always true within the count of the last reserve. */
static inline bool ml_live_map_has_room(const struct ml_live_map *map) {
    return map->count < map->count_max && map->overflow.room > 0;
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

/* What stands there. False: no block. */
bool ml_live_map_find(
    const struct ml_live_map *map, uint64_t key, uint64_t hash, struct ml_live_block *out_block
);

/* Take a block out. False if it is not there. */
bool ml_live_map_remove(
    struct ml_live_map *map, uint64_t key, uint64_t hash, struct ml_live_block *out_block
);

/* Called after each round: when far fewer blocks have lived for some rounds, give lines back, some
 * each round. */
void ml_live_map_trim(struct ml_live_map *map);

/* Show every block, in no order: its address, heap and what stands behind them; until `show`
 * answers false. The map must not change meanwhile, unless `show` then ends the walk. */
void ml_live_map_walk(
    const struct ml_live_map *map,
    bool (*show)(void *context, uint64_t address, unsigned heap, const struct ml_live_block *block),
    void *context
);

/* ---- the usual cases, in line */

/* Whether ml_live_map_put_fast may be called. */
static inline bool ml_live_fits_slot(uint64_t hash, uint64_t bytes) {
    return (hash & ML_LIVE_ODD) == 0 && bytes < ML_LIVE_INLINE_MAX;
}

/* The same, not inline, for any place of the block. False if the key may be there already. */
bool ml_live_map_put_plain(struct ml_live_map *map, uint64_t hash, uint64_t bytes, uint32_t cell);

/* Put a block that fits a slot, of weight 1, there, after ml_live_map_reserve; `line` is its home.
 * False if the key may be there already: nothing has changed then, and ml_live_map_put will do. */
static inline bool ml_live_map_put_fast(
    struct ml_live_map *map, struct ml_live_line *line, uint64_t hash, uint64_t bytes, uint32_t cell
) {
    const uint32_t low = ml_live_low(hash);
    /* The home is full, or some of its own are elsewhere, or the key may be there already. */
    if (line->state >= ML_LIVE_USED_MASK || ml_live_line_match(line, low) != 0) {
        return ml_live_map_put_plain(map, hash, bytes, cell);
    }
    const unsigned slot = (unsigned)__builtin_ctz(~line->state);
    line->state |= 1U << slot;
    line->low[slot] = low;
    line->rest[slot] = cell | ml_live_high(hash) | bytes << ML_LIVE_BYTES_SHIFT;
    map->count++;
    return true;
}

/* Empty a slot that holds a block, not a wide one. */
static inline void
ml_live_map_empty(struct ml_live_map *map, struct ml_live_line *line, unsigned slot) {
    line->low[slot] = 0;
    line->rest[slot] = 0;
    line->state &= ~(1U << slot);
    map->count--;
}

#endif
