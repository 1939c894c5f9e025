#include "service/live_map.h"

#include <string.h>

enum {
    CAPACITY_MIN = 64,
    WIDE_FLAG_BIT = ML_LIVE_CELL_BITS,
    BYTES_SHIFT = ML_LIVE_CELL_BITS + 1,
    INLINE_BITS = 64 - BYTES_SHIFT
};

void ml_live_map_init(struct ml_live_map *map, struct ml_budget *budget, uint64_t seed) {
    *map = (struct ml_live_map){.budget = budget};
    /* splitmix64's finish: every bit of the seed reaches every bit of the factor. */
    seed += UINT64_C(0x9e3779b97f4a7c15);
    seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
    map->factor = (seed ^ seed >> 31) | 1;
}

void ml_live_map_fini(struct ml_live_map *map) {
    ml_budget_free(map->budget, map->slots, map->capacity * sizeof(*map->slots));
    ml_budget_free(map->budget, map->wide, map->wide_capacity * sizeof(*map->wide));
    map->slots = NULL;
    map->wide = NULL;
    map->capacity = 0;
    map->count = 0;
    map->wide_capacity = 0;
    map->wide_used = 0;
    map->wide_free = 0;
}

static inline size_t home_of(const struct ml_live_map *map, uint64_t key) {
    uint64_t hash = key * map->factor;
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(((unsigned __int128)hash * map->capacity) >> 64);
}

static inline size_t next_slot(const struct ml_live_map *map, size_t slot) {
    return slot + 1 == map->capacity ? 0 : slot + 1;
}

static size_t distance(const struct ml_live_map *map, size_t from, size_t to) {
    return to >= from ? to - from : to + map->capacity - from;
}

static void place(struct ml_live_map *map, uint64_t key, uint64_t value) {
    size_t slot = home_of(map, key);
    while (map->slots[slot].key != 0) {
        slot = next_slot(map, slot);
    }
    map->slots[slot] = (struct ml_live_slot){.key = key, .value = value};
}

static enum ml_status resize(struct ml_live_map *map, size_t capacity) {
    struct ml_live_slot *const old = map->slots;
    const size_t old_capacity = map->capacity;
    struct ml_live_slot *slots = NULL;
    if (capacity <= SIZE_MAX / sizeof(*slots)) {
        slots = ml_budget_new(map->budget, capacity * sizeof(*slots));
    }
    if (slots == NULL) {
        return ML_ENV_MEMORY;
    }
    map->slots = slots;
    map->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].key != 0) {
            place(map, old[i].key, old[i].value);
        }
    }
    ml_budget_free(map->budget, old, old_capacity * sizeof(*old));
    return ML_OK;
}

static enum ml_status reserve_wide(struct ml_live_map *map) {
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

enum ml_status ml_live_map_reserve(struct ml_live_map *map) {
    if (map->count >= map->capacity / 16 * 13) {
        const size_t capacity =
            map->capacity == 0 ? CAPACITY_MIN : (map->capacity + map->capacity / 2 + 15) / 16 * 16;
        const enum ml_status status = resize(map, capacity);
        if (status != ML_OK) {
            return status;
        }
    }
    return reserve_wide(map);
}

static uint32_t take_wide(struct ml_live_map *map) {
    if (map->wide_free != 0) {
        const uint32_t index = (uint32_t)(map->wide_free - 1);
        map->wide_free = map->wide[index].weight_blocks;
        return index;
    }
    return map->wide_used++;
}

static bool is_wide(uint64_t value) {
    return (value >> WIDE_FLAG_BIT & 1) != 0;
}

static struct ml_live_block unpack(const struct ml_live_map *map, uint64_t value) {
    struct ml_live_block block = {
        .weight_bytes = value >> BYTES_SHIFT,
        .weight_blocks = 1,
        .cell = (uint32_t)(value & (ML_LIVE_CELLS_MAX - 1)),
    };
    if (is_wide(value)) {
        const struct ml_live_wide *wide = &map->wide[value >> BYTES_SHIFT];
        block.weight_bytes = wide->weight_bytes;
        block.weight_blocks = wide->weight_blocks;
    }
    return block;
}

static void forget_wide(struct ml_live_map *map, uint64_t value) {
    if (is_wide(value)) {
        const uint64_t index = value >> BYTES_SHIFT;
        map->wide[index].weight_blocks = map->wide_free;
        map->wide_free = index + 1;
    }
}

static uint64_t pack(struct ml_live_map *map, const struct ml_live_block *block) {
    if (block->weight_blocks == 1 && block->weight_bytes >> INLINE_BITS == 0) {
        return block->cell | block->weight_bytes << BYTES_SHIFT;
    }
    const uint32_t index = take_wide(map);
    map->wide[index].weight_bytes = block->weight_bytes;
    map->wide[index].weight_blocks = block->weight_blocks;
    return block->cell | (uint64_t)1 << WIDE_FLAG_BIT | (uint64_t)index << BYTES_SHIFT;
}

bool ml_live_map_put(
    struct ml_live_map *map,
    uint64_t key,
    const struct ml_live_block *block,
    struct ml_live_block *out_old
) {
    size_t slot = home_of(map, key);
    while (map->slots[slot].key != 0 && map->slots[slot].key != key) {
        slot = next_slot(map, slot);
    }
    const bool there = map->slots[slot].key != 0;
    if (there) {
        *out_old = unpack(map, map->slots[slot].value);
        forget_wide(map, map->slots[slot].value);
    }
    map->slots[slot] = (struct ml_live_slot){.key = key, .value = pack(map, block)};
    map->count += there ? 0 : 1;
    return there;
}

/* Close the hole: every follower that is further from its home than the hole moves into it. */
static void close_hole(struct ml_live_map *map, size_t hole) {
    size_t slot = next_slot(map, hole);
    while (map->slots[slot].key != 0) {
        const size_t home = home_of(map, map->slots[slot].key);
        if (distance(map, home, slot) >= distance(map, hole, slot)) {
            map->slots[hole] = map->slots[slot];
            hole = slot;
        }
        slot = next_slot(map, slot);
    }
    map->slots[hole].key = 0;
}

bool ml_live_map_remove(struct ml_live_map *map, uint64_t key, struct ml_live_block *out_block) {
    if (map->count == 0) {
        return false;
    }
    size_t slot = home_of(map, key);
    while (map->slots[slot].key != key) {
        if (map->slots[slot].key == 0) {
            return false;
        }
        slot = next_slot(map, slot);
    }
    const uint64_t value = map->slots[slot].value;
    *out_block = unpack(map, value);
    forget_wide(map, value);
    close_hole(map, slot);
    map->count--;
    return true;
}

void ml_live_map_trim(struct ml_live_map *map) {
    /* An eighth in use is far below what growing leaves (a half), so the two do not alternate. */
    if (map->capacity > 64 * CAPACITY_MIN && map->count < map->capacity / 8) {
        const enum ml_status status = resize(map, (map->count * 2 + CAPACITY_MIN + 15) / 16 * 16);
        (void)status; /* no memory to save memory with: it stays as it is */
    }
}

void ml_live_map_prefetch(const struct ml_live_map *map, uint64_t key) {
    if (map->capacity != 0) {
        __builtin_prefetch(&map->slots[home_of(map, key)], 1);
    }
}

bool ml_live_map_next(
    const struct ml_live_map *map,
    size_t *cursor,
    uint64_t *out_key,
    struct ml_live_block *out_block
) {
    while (*cursor < map->capacity) {
        const struct ml_live_slot *slot = &map->slots[(*cursor)++];
        if (slot->key != 0) {
            *out_key = slot->key;
            *out_block = unpack(map, slot->value);
            return true;
        }
    }
    return false;
}

bool ml_live_map_check(const struct ml_live_map *map) {
    size_t used = 0;
    for (size_t i = 0; i < map->capacity; i++) {
        const uint64_t key = map->slots[i].key;
        if (key == 0) {
            continue;
        }
        used++;
        size_t slot = home_of(map, key);
        while (map->slots[slot].key != key) {
            if (map->slots[slot].key == 0) {
                return false;
            }
            slot = next_slot(map, slot);
        }
        if (slot != i) {
            return false; /* twice there */
        }
    }
    return used == map->count;
}
