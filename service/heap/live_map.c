#include "service/heap/live_map.h"

#include "service/heap/live_map_internal.h"

/* Lines moved in one step of growing: with three or four blocks each, some ten microseconds. */
enum { STEP_LINES = 512 };

/* splitmix64's finish: every bit reaches every bit. */
static uint64_t mix(uint64_t word) {
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

void ml_live_map_init(struct ml_live_map *map, struct ml_budget *budget, uint64_t seed) {
    *map = (struct ml_live_map){.budget = budget};
    map->step_lines = STEP_LINES;
    map->factor = mix(seed + UINT64_C(0x9e3779b97f4a7c15)) | 1;
    ml_live_overflow_init(&map->overflow, budget);
}

void ml_live_map_fini(struct ml_live_map *map) {
    ml_budget_free_table(map->budget, map->lines, map->lines_capacity * sizeof(*map->lines));
    ml_budget_free(map->budget, map->wide, map->wide_capacity * sizeof(*map->wide));
    ml_live_overflow_fini(&map->overflow);
    *map = (struct ml_live_map
    ){.budget = map->budget,
      .step_lines = map->step_lines,
      .factor = map->factor,
      .overflow = {.budget = map->budget}};
}

void ml_live_map_close(struct ml_live_map *map) {
    ml_live_map_fini(map);
    map->closed = true;
}

uint64_t ml_live_map_bytes(const struct ml_live_map *map) {
    return map->lines_capacity * sizeof(*map->lines) + map->wide_capacity * sizeof(*map->wide) +
           ml_live_overflow_bytes(&map->overflow);
}

uint64_t ml_live_map_odd_hash(const struct ml_live_map *map, uint64_t key) {
    const uint64_t hash = mix(key * map->factor) | (uint64_t)1 << ML_LIVE_HASH_SHIFT;
    return (hash & UINT64_MAX << ML_LIVE_HASH_SHIFT) | ML_LIVE_ODD;
}

/* ---- blocks that do not fit a slot */

/* The index's halves are where cell and bytes would be. */
static uint64_t pack_index(uint32_t index) {
    return (index & (ML_LIVE_CELLS_MAX - 1)) | (uint64_t)(index >> ML_LIVE_CELL_BITS)
                                                   << ML_LIVE_BYTES_SHIFT;
}

static uint32_t unpack_index(uint64_t rest) {
    return ml_live_rest_cell(rest) | (uint32_t)ml_live_rest_bytes(rest) << ML_LIVE_CELL_BITS;
}

static uint32_t take_wide(struct ml_live_map *map) {
    if (map->wide_free != 0) {
        const uint32_t index = (uint32_t)(map->wide_free - 1);
        map->wide_free = map->wide[index].weight_blocks;
        return index;
    }
    return map->wide_used++;
}

static void forget_wide(struct ml_live_map *map, uint64_t rest) {
    if (ml_live_is_wide(rest)) {
        const uint32_t index = unpack_index(rest);
        map->wide[index].weight_blocks = map->wide_free;
        map->wide_free = (uint64_t)index + 1;
    }
}

enum ml_status ml_live_map_reserve_wide(struct ml_live_map *map) {
    if (map->wide_free != 0 || map->wide_used < map->wide_capacity) {
        return ML_OK;
    }
    const uint32_t capacity = map->wide_capacity == 0 ? 16 : map->wide_capacity * 2;
    if (capacity > (uint32_t)1 << 30) {
        return ML_ENV_MEMORY;
    }
    struct ml_live_wide *wide = ml_budget_resize(
        map->budget, map->wide, map->wide_capacity * sizeof(*wide), capacity * sizeof(*wide)
    );
    if (wide == NULL) {
        return ML_ENV_MEMORY;
    }
    map->wide = wide;
    map->wide_capacity = capacity;
    return ML_OK;
}

uint64_t ml_live_wide_key(const struct ml_live_map *map, uint64_t rest) {
    return map->wide[unpack_index(rest)].key;
}

struct ml_live_block ml_live_unpack(const struct ml_live_map *map, uint64_t rest) {
    if (ml_live_is_wide(rest)) {
        const struct ml_live_wide *wide = &map->wide[unpack_index(rest)];
        return (struct ml_live_block
        ){.weight_bytes = wide->weight_bytes,
          .weight_blocks = wide->weight_blocks,
          .size_bytes = wide->size_bytes,
          .cell = wide->cell,
          .sampled = wide->sampled != 0};
    }
    return (struct ml_live_block
    ){.weight_bytes = ml_live_rest_bytes(rest),
      .weight_blocks = 1,
      .size_bytes = ml_live_rest_bytes(rest),
      .cell = ml_live_rest_cell(rest)};
}

static uint64_t
pack(struct ml_live_map *map, uint64_t key, uint64_t hash, const struct ml_live_block *block) {
    if (!block->sampled && ml_live_fits_slot(hash, block->weight_bytes)) {
        return block->cell | ml_live_high(hash) | block->weight_bytes << ML_LIVE_BYTES_SHIFT;
    }
    const uint32_t index = take_wide(map);
    map->wide[index] = (struct ml_live_wide){
        .key = key,
        .weight_bytes = block->weight_bytes,
        .weight_blocks = block->weight_blocks,
        .size_bytes = block->size_bytes & (UINT64_MAX >> 1),
        .sampled = block->sampled,
        .cell = block->cell,
    };
    return pack_index(index) | ml_live_high(hash) | (uint64_t)1 << ML_LIVE_WIDE_BIT;
}

/* ---- blocks */

/* One that is not there yet. */
static inline void place(struct ml_live_map *map, uint64_t hash, uint64_t rest) {
    struct ml_live_line *home = ml_live_map_home(map, hash);
    if (!ml_live_line_place(map, home, hash, rest)) {
        ml_live_line_add_overflow(home);
        ml_live_overflow_put(&map->overflow, hash & ~(uint64_t)ML_LIVE_ODD, rest);
    }
}

/* Where a block is: in a slot of its home or of the other line, or in the overflow table. */
struct found {
    struct ml_live_line *home, *line;
    unsigned slot;
    struct ml_live_overflow_entry *overflow;
    uint64_t *rest; /* NULL: nowhere */
};

/* Whether that is the key's, if the hash is. */
static bool is_same(const struct ml_live_map *map, uint64_t key, uint64_t hash, uint64_t rest) {
    return ml_live_is_wide(rest) ? map->wide[unpack_index(rest)].key == key
                                 : (hash & ML_LIVE_ODD) == 0;
}

static bool
find_in(const struct ml_live_map *map, uint64_t key, uint64_t hash, struct found *found) {
    struct ml_live_line *const line = found->line;
    const unsigned matches = ml_live_line_match(line, ml_live_low(hash)) & line->state;
    for (unsigned left = matches; left != 0; left &= left - 1) {
        const unsigned slot = (unsigned)__builtin_ctz(left);
        if (ml_live_slot_hash(line, slot) == (hash & ~(uint64_t)ML_LIVE_ODD) &&
            is_same(map, key, hash, line->rest[slot])) {
            found->slot = slot;
            found->rest = &line->rest[slot];
            return true;
        }
    }
    return false;
}

static struct found find(const struct ml_live_map *map, uint64_t key, uint64_t hash) {
    struct ml_live_line *const home = ml_live_map_home(map, hash);
    struct found found = {.home = home, .line = home};
    if (find_in(map, key, hash, &found)) {
        return found;
    }
    if (ml_live_line_lends(home)) {
        found.line = ml_live_map_other(map, home);
        if (find_in(map, key, hash, &found)) {
            return found;
        }
    }
    if (ml_live_line_has_overflow(home)) {
        const uint64_t own = hash & ~(uint64_t)ML_LIVE_ODD;
        found.overflow = ml_live_overflow_find(&map->overflow, own, NULL);
        while (found.overflow != NULL && !is_same(map, key, hash, found.overflow->rest)) {
            found.overflow = ml_live_overflow_find(&map->overflow, own, found.overflow);
        }
        found.rest = found.overflow == NULL ? NULL : &found.overflow->rest;
    }
    return found;
}

bool ml_live_map_put_plain(struct ml_live_map *map, uint64_t hash, uint64_t bytes, uint32_t cell) {
    struct ml_live_line *const home = ml_live_map_home(map, hash);
    const uint32_t low = ml_live_low(hash);
    if (ml_live_line_match(home, low) != 0 ||
        (ml_live_line_lends(home) && ml_live_line_match(ml_live_map_other(map, home), low) != 0) ||
        (ml_live_line_has_overflow(home) &&
         ml_live_overflow_find(&map->overflow, hash, NULL) != NULL)) {
        return false;
    }
    map->count++;
    place(map, hash, cell | ml_live_high(hash) | bytes << ML_LIVE_BYTES_SHIFT);
    return true;
}

bool ml_live_map_put(
    struct ml_live_map *map,
    uint64_t key,
    uint64_t hash,
    const struct ml_live_block *block,
    struct ml_live_block *out_old
) {
    const struct found found = find(map, key, hash);
    if (found.rest != NULL) {
        *out_old = ml_live_unpack(map, *found.rest);
        forget_wide(map, *found.rest);
        *found.rest = pack(map, key, hash, block);
        return true;
    }
    map->count++;
    place(map, hash, pack(map, key, hash, block));
    return false;
}

bool ml_live_map_find(
    const struct ml_live_map *map, uint64_t key, uint64_t hash, struct ml_live_block *out_block
) {
    const struct found found = map->count > 0 ? find(map, key, hash) : (struct found){.rest = NULL};
    if (found.rest == NULL) {
        return false;
    }
    *out_block = ml_live_unpack(map, *found.rest);
    return true;
}

bool ml_live_map_remove(
    struct ml_live_map *map, uint64_t key, uint64_t hash, struct ml_live_block *out_block
) {
    if (map->count == 0) {
        return false;
    }
    const struct found found = find(map, key, hash);
    if (found.rest == NULL) {
        return false;
    }
    *out_block = ml_live_unpack(map, *found.rest);
    forget_wide(map, *found.rest);
    if (found.overflow != NULL) {
        ml_live_line_remove_overflow(found.home);
        ml_live_overflow_remove(&map->overflow, found.overflow);
        map->count--;
        return true;
    }
    found.home->state -= found.line == found.home ? 0 : ML_LIVE_IN_OTHER;
    ml_live_map_empty(map, found.line, found.slot);
    return true;
}
