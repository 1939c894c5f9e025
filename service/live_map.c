#include "service/live_map.h"

enum {
    LINES_MIN = 16,
    /* While a process grows, between 3/4 of 13/16 and 13/16 of the slots are used: 20 to 26 bytes a
     * block, 23 on the average. Fuller, and many are turned away from their homes; growing by more,
     * and a block costs more right after; by less, and it is moved too often. */
    FULL = 13,
    FULL_OF = 16,
    GROWTH_PART = 3,
    /* Rounds of few blocks before memory is given back: a program that fills and empties its heap
     * in turns pays for growing once. */
    TRIM_ROUNDS = 64,
    /* A line's count that is no more kept: it stays until the map grows. */
    AWAY_MAX = 255
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
    ml_budget_free_table(map->budget, map->lines, map->lines_count * sizeof(*map->lines));
    ml_budget_free(map->budget, map->wide, map->wide_capacity * sizeof(*map->wide));
    *map = (struct ml_live_map){.budget = map->budget, .factor = map->factor};
}

static inline struct ml_live_line *
next_line(const struct ml_live_map *map, struct ml_live_line *line) {
    return line + 1 == map->lines + map->lines_count ? map->lines : line + 1;
}

/* ---- how many were turned away from a line */

static unsigned away_of(const struct ml_live_line *line) {
    unsigned away = 0;
    for (unsigned i = 0; i < ML_LIVE_LINE_SLOTS; i++) {
        away |= (unsigned)(line->slots[i].value >> ML_LIVE_AWAY_SHIFT & 3) << 2 * i;
    }
    return away;
}

static inline bool has_away(const struct ml_live_line *line) {
    return ((line->slots[0].value | line->slots[1].value | line->slots[2].value |
             line->slots[3].value) &
            ML_LIVE_AWAY_MASK) != 0;
}

static void set_away(struct ml_live_line *line, unsigned away) {
    for (unsigned i = 0; i < ML_LIVE_LINE_SLOTS; i++) {
        const uint64_t part = (uint64_t)(away >> 2 * i & 3) << ML_LIVE_AWAY_SHIFT;
        line->slots[i].value = (line->slots[i].value & ~ML_LIVE_AWAY_MASK) | part;
    }
}

/* Nearly always the lowest quarter of the count alone. */
static inline void turn_away(struct ml_live_line *line) {
    if ((line->slots[0].value & ML_LIVE_AWAY_MASK) != ML_LIVE_AWAY_MASK) {
        line->slots[0].value += (uint64_t)1 << ML_LIVE_AWAY_SHIFT;
        return;
    }
    const unsigned away = away_of(line);
    set_away(line, away == AWAY_MAX ? away : away + 1);
}

/* One of those that were turned away is gone. */
static inline void turned_away_no_more(struct ml_live_line *line) {
    const uint64_t low = line->slots[0].value & ML_LIVE_AWAY_MASK;
    if (low != 0 && low != ML_LIVE_AWAY_MASK) {
        line->slots[0].value -= (uint64_t)1 << ML_LIVE_AWAY_SHIFT;
        return;
    }
    const unsigned away = away_of(line);
    set_away(line, away == AWAY_MAX ? away : away - 1);
}

/* ---- slots */

static void fill(struct ml_live_slot *slot, uint64_t key, uint64_t value) {
    slot->key = key;
    slot->value = (slot->value & ML_LIVE_AWAY_MASK) | (value & ~ML_LIVE_AWAY_MASK);
}

static struct ml_live_slot *
find(const struct ml_live_map *map, uint64_t key, uint64_t hash, struct ml_live_line **out_line) {
    struct ml_live_line *line = ml_live_map_home(map, hash);
    for (;;) {
        const unsigned found = ml_live_line_match(line, key);
        if (found != 0) {
            *out_line = line;
            return &line->slots[__builtin_ctz(found)];
        }
        if (!has_away(line)) {
            return NULL;
        }
        line = next_line(map, line);
    }
}

/* A key that is not there; a slot is free somewhere. */
static void place(struct ml_live_map *map, uint64_t key, uint64_t hash, uint64_t value) {
    struct ml_live_line *line = ml_live_map_home(map, hash);
    unsigned empty = ml_live_line_match(line, 0);
    while (empty == 0) {
        turn_away(line);
        line = next_line(map, line);
        empty = ml_live_line_match(line, 0);
    }
    fill(&line->slots[__builtin_ctz(empty)], key, value);
}

static enum ml_status resize(struct ml_live_map *map, size_t lines_count) {
    struct ml_live_line *const old = map->lines;
    const size_t old_count = map->lines_count;
    struct ml_live_line *lines = NULL;
    if (lines_count <= SIZE_MAX / sizeof(*lines)) {
        lines = ml_budget_new_table(map->budget, lines_count * sizeof(*lines));
    }
    if (lines == NULL) {
        return ML_ENV_MEMORY;
    }
    map->lines = lines;
    map->lines_count = lines_count;
    map->count_max = lines_count * ML_LIVE_LINE_SLOTS / FULL_OF * FULL;
    for (size_t i = 0; i < old_count; i++) {
        for (unsigned k = 0; k < ML_LIVE_LINE_SLOTS; k++) {
            const struct ml_live_slot *slot = &old[i].slots[k];
            if (slot->key != 0) {
                place(map, slot->key, ml_live_map_hash(map, slot->key), slot->value);
            }
        }
    }
    ml_budget_free_table(map->budget, old, old_count * sizeof(*old));
    return ML_OK;
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

/* Lines in fours: what is full of them is then a whole number. */
static size_t whole_lines(size_t count) {
    return (count + 3) / 4 * 4;
}

enum ml_status ml_live_map_reserve_more(struct ml_live_map *map, size_t count) {
    const size_t needed = (map->count + count) / (ML_LIVE_LINE_SLOTS * FULL) * FULL_OF + FULL_OF;
    const size_t grown = map->lines_count + map->lines_count / GROWTH_PART;
    const size_t wanted = grown < needed ? needed : grown;
    return resize(map, wanted < LINES_MIN ? LINES_MIN : whole_lines(wanted));
}

/* ---- weights that do not fit */

static uint32_t take_wide(struct ml_live_map *map) {
    if (map->wide_free != 0) {
        const uint32_t index = (uint32_t)(map->wide_free - 1);
        map->wide_free = map->wide[index].weight_blocks;
        return index;
    }
    return map->wide_used++;
}

static bool is_wide(uint64_t value) {
    return (value >> ML_LIVE_WIDE_BIT & 1) != 0;
}

static struct ml_live_block unpack(const struct ml_live_map *map, uint64_t value) {
    struct ml_live_block block = {
        .weight_bytes = value >> ML_LIVE_BYTES_SHIFT,
        .weight_blocks = 1,
        .size_bytes = value >> ML_LIVE_BYTES_SHIFT,
        .cell = (uint32_t)(value & (ML_LIVE_CELLS_MAX - 1)),
    };
    if (is_wide(value)) {
        const struct ml_live_wide *wide = &map->wide[value >> ML_LIVE_BYTES_SHIFT];
        block.weight_bytes = wide->weight_bytes;
        block.weight_blocks = wide->weight_blocks;
        block.size_bytes = wide->size_bytes;
        block.sampled = wide->sampled != 0;
    }
    return block;
}

static void forget_wide(struct ml_live_map *map, uint64_t value) {
    if (is_wide(value)) {
        const uint64_t index = value >> ML_LIVE_BYTES_SHIFT;
        map->wide[index].weight_blocks = map->wide_free;
        map->wide_free = index + 1;
    }
}

static uint64_t pack(struct ml_live_map *map, const struct ml_live_block *block) {
    if (!block->sampled && block->weight_bytes >> ML_LIVE_INLINE_BITS == 0) {
        return block->cell | block->weight_bytes << ML_LIVE_BYTES_SHIFT;
    }
    const uint32_t index = take_wide(map);
    map->wide[index] = (struct ml_live_wide){
        .weight_bytes = block->weight_bytes,
        .weight_blocks = block->weight_blocks,
        .size_bytes = block->size_bytes & (UINT64_MAX >> 1),
        .sampled = block->sampled,
    };
    return block->cell | (uint64_t)1 << ML_LIVE_WIDE_BIT | (uint64_t)index << ML_LIVE_BYTES_SHIFT;
}

/* ---- */

bool ml_live_map_put(
    struct ml_live_map *map,
    uint64_t key,
    uint64_t hash,
    const struct ml_live_block *block,
    struct ml_live_block *out_old
) {
    struct ml_live_line *const home = ml_live_map_home(map, hash);
    struct ml_live_line *line = home;
    struct ml_live_line *empty_line = NULL;
    for (;;) {
        const unsigned found = ml_live_line_match(line, key);
        if (found != 0) {
            struct ml_live_slot *slot = &line->slots[__builtin_ctz(found)];
            *out_old = unpack(map, slot->value);
            forget_wide(map, slot->value);
            fill(slot, key, pack(map, block));
            return true;
        }
        if (empty_line == NULL && ml_live_line_match(line, 0) != 0) {
            empty_line = line;
        }
        if (!has_away(line)) {
            break;
        }
        line = next_line(map, line);
    }
    map->count++;
    if (empty_line != home) {
        place(map, key, hash, pack(map, block));
        return false;
    }
    fill(&home->slots[__builtin_ctz(ml_live_line_match(home, 0))], key, pack(map, block));
    return false;
}

bool ml_live_map_remove(
    struct ml_live_map *map, uint64_t key, uint64_t hash, struct ml_live_block *out_block
) {
    if (map->count == 0) {
        return false;
    }
    struct ml_live_line *line = NULL;
    struct ml_live_slot *slot = find(map, key, hash, &line);
    if (slot == NULL) {
        return false;
    }
    *out_block = unpack(map, slot->value);
    forget_wide(map, slot->value);
    fill(slot, 0, 0);
    for (struct ml_live_line *at = ml_live_map_home(map, hash); at != line;
         at = next_line(map, at)) {
        turned_away_no_more(at);
    }
    map->count--;
    return true;
}

void ml_live_map_trim(struct ml_live_map *map) {
    const size_t needed = map->count / ML_LIVE_LINE_SLOTS;
    /* An eighth in use is far below what growing leaves, so the two do not alternate. */
    const bool low = map->lines_count > 64 * LINES_MIN && needed < map->lines_count / 8;
    map->low_rounds = low ? map->low_rounds + 1 : 0;
    if (map->low_rounds == TRIM_ROUNDS) {
        map->low_rounds = 0;
        const enum ml_status status = resize(map, whole_lines(needed + needed / 2 + LINES_MIN));
        (void)status; /* no memory to save memory with: it stays as it is */
    }
}

bool ml_live_map_next(
    const struct ml_live_map *map,
    size_t *cursor,
    uint64_t *out_key,
    struct ml_live_block *out_block
) {
    while (*cursor < map->lines_count * ML_LIVE_LINE_SLOTS) {
        const struct ml_live_line *line = &map->lines[*cursor / ML_LIVE_LINE_SLOTS];
        const struct ml_live_slot *slot = &line->slots[(*cursor)++ % ML_LIVE_LINE_SLOTS];
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
    for (size_t i = 0; i < map->lines_count * ML_LIVE_LINE_SLOTS; i++) {
        struct ml_live_line *const line = &map->lines[i / ML_LIVE_LINE_SLOTS];
        const struct ml_live_slot *slot = &line->slots[i % ML_LIVE_LINE_SLOTS];
        struct ml_live_line *found_line = NULL;
        if (slot->key == 0) {
            continue;
        }
        used++;
        if (find(map, slot->key, ml_live_map_hash(map, slot->key), &found_line) != slot) {
            return false; /* not found, or twice there */
        }
    }
    return used == map->count;
}
