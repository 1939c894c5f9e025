#include "service/live_map.h"

#include <string.h>

enum {
    /* While a process grows, 2.75 to 3.43 of a line's five slots are used: 19 to 23 bytes a block.
     * 4 to 7 in a hundred find their home full then, 1 to 3 the line beside it too. Fuller,
     * and more do; growing by less, and all are moved more often. */
    FULL = 103,
    FULL_OF = 30,
    GROWTH_PART = 4,
    PAIR_SLOTS = 2 * ML_LIVE_LINE_SLOTS,
    /* Rounds of few blocks before memory is given back: a program that fills and empties its heap
     * in turns pays for growing once. */
    TRIM_ROUNDS = 64,
    TRIM_LINES = 1024 /* 64 KiB are kept */
};

/* A count of those that were turned away that is no more kept: it stays until the map grows. */
#define AWAY_MAX (UINT32_MAX - ML_LIVE_TURNED_AWAY + 1)

/* 128 GiB; the hash's upper half tells that many lines apart. */
#define LINES_MAX ((size_t)1 << 31)

/* splitmix64's finish: every bit reaches every bit. */
static uint64_t mix(uint64_t word) {
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

void ml_live_map_init(struct ml_live_map *map, struct ml_budget *budget, uint64_t seed) {
    *map = (struct ml_live_map){.budget = budget};
    map->factor = mix(seed + UINT64_C(0x9e3779b97f4a7c15)) | 1;
    ml_live_away_init(&map->away, budget);
}

void ml_live_map_fini(struct ml_live_map *map) {
    ml_budget_free_table(map->budget, map->lines, map->lines_capacity * sizeof(*map->lines));
    ml_budget_free(map->budget, map->wide, map->wide_capacity * sizeof(*map->wide));
    ml_live_away_fini(&map->away);
    *map = (struct ml_live_map
    ){.budget = map->budget, .factor = map->factor, .away = {.budget = map->budget}};
}

void ml_live_map_close(struct ml_live_map *map) {
    ml_live_map_fini(map);
    map->closed = true;
}

uint64_t ml_live_map_bytes(const struct ml_live_map *map) {
    return map->lines_capacity * sizeof(*map->lines) + map->wide_capacity * sizeof(*map->wide) +
           map->away.capacity * sizeof(*map->away.entries);
}

uint64_t ml_live_map_odd_hash(const struct ml_live_map *map, uint64_t key) {
    const uint64_t hash = mix(key * map->factor) | (uint64_t)1 << ML_LIVE_HASH_SHIFT;
    return (hash & UINT64_MAX << ML_LIVE_HASH_SHIFT) | ML_LIVE_ODD;
}

/* ---- blocks that do not fit a slot */

static bool is_wide(uint64_t rest) {
    return (rest >> ML_LIVE_WIDE_BIT & 1) != 0;
}

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
    if (is_wide(rest)) {
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

static struct ml_live_block unpack(const struct ml_live_map *map, uint64_t rest) {
    if (is_wide(rest)) {
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

/* ---- lines */

/* The hash of what stands in a slot; of a wide one without ML_LIVE_ODD. */
static inline uint64_t slot_hash(const struct ml_live_line *line, unsigned slot) {
    const uint64_t high = line->rest[slot] >> ML_LIVE_CELL_BITS;
    return (high << ML_LIVE_LOW_BITS | line->low[slot]) << ML_LIVE_HASH_SHIFT;
}

static inline void fill(struct ml_live_line *line, unsigned slot, uint32_t low, uint64_t rest) {
    line->state |= 1U << slot;
    line->low[slot] = low;
    line->rest[slot] = rest;
}

static inline bool is_full(const struct ml_live_line *line) {
    return (line->state & ML_LIVE_USED_MASK) == ML_LIVE_USED_MASK;
}

static inline void turn_away(struct ml_live_line *line) {
    line->state += line->state >= AWAY_MAX ? 0 : ML_LIVE_TURNED_AWAY;
}

static inline void turned_away_no_more(struct ml_live_line *line) {
    line->state -= line->state >= AWAY_MAX ? 0 : ML_LIVE_TURNED_AWAY;
}

/* A block that is not there yet. */
static inline void place(struct ml_live_map *map, uint64_t hash, uint64_t rest) {
    struct ml_live_line *line = ml_live_map_home(map, hash);
    if (is_full(line)) {
        struct ml_live_line *const other = ml_live_map_other(map, line);
        if (is_full(other)) {
            turn_away(line);
            ml_live_away_put(&map->away, hash & ~(uint64_t)ML_LIVE_ODD, rest);
            return;
        }
        line->state += ML_LIVE_IN_OTHER;
        line = other;
    }
    fill(line, (unsigned)__builtin_ctz(~line->state), ml_live_low(hash), rest);
}

/* Where a block is: in a slot of its home or of the other line, or turned away. */
struct found {
    struct ml_live_line *home, *line;
    unsigned slot;
    struct ml_live_away_entry *away;
    uint64_t *rest; /* NULL: nowhere */
};

/* Whether that is the key's, if the hash is. */
static bool is_same(const struct ml_live_map *map, uint64_t key, uint64_t hash, uint64_t rest) {
    return is_wide(rest) ? map->wide[unpack_index(rest)].key == key : (hash & ML_LIVE_ODD) == 0;
}

static bool
find_in(const struct ml_live_map *map, uint64_t key, uint64_t hash, struct found *found) {
    struct ml_live_line *const line = found->line;
    const unsigned matches = ml_live_line_match(line, ml_live_low(hash)) & line->state;
    for (unsigned left = matches; left != 0; left &= left - 1) {
        const unsigned slot = (unsigned)__builtin_ctz(left);
        if (slot_hash(line, slot) == (hash & ~(uint64_t)ML_LIVE_ODD) &&
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
    if (ml_live_line_has_away(home)) {
        const uint64_t own = hash & ~(uint64_t)ML_LIVE_ODD;
        found.away = ml_live_away_find(&map->away, own, NULL);
        while (found.away != NULL && !is_same(map, key, hash, found.away->rest)) {
            found.away = ml_live_away_find(&map->away, own, found.away);
        }
        found.rest = found.away == NULL ? NULL : &found.away->rest;
    }
    return found;
}

bool ml_live_map_put_plain(struct ml_live_map *map, uint64_t hash, uint64_t bytes, uint32_t cell) {
    struct ml_live_line *const home = ml_live_map_home(map, hash);
    const uint32_t low = ml_live_low(hash);
    if (ml_live_line_match(home, low) != 0 ||
        (ml_live_line_lends(home) && ml_live_line_match(ml_live_map_other(map, home), low) != 0) ||
        (ml_live_line_has_away(home) && ml_live_away_find(&map->away, hash, NULL) != NULL)) {
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
        *out_old = unpack(map, *found.rest);
        forget_wide(map, *found.rest);
        *found.rest = pack(map, key, hash, block);
        return true;
    }
    map->count++;
    place(map, hash, pack(map, key, hash, block));
    return false;
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
    *out_block = unpack(map, *found.rest);
    forget_wide(map, *found.rest);
    if (found.away != NULL) {
        turned_away_no_more(found.home);
        ml_live_away_remove(&map->away, found.away);
        map->count--;
        return true;
    }
    found.home->state -= found.line == found.home ? 0 : ML_LIVE_IN_OTHER;
    ml_live_map_empty(map, found.line, found.slot);
    return true;
}

/* ---- growing and shrinking */

static void spread_pair(struct ml_live_map *map, struct ml_live_line *pair) {
    const struct ml_live_line lines[2] = {pair[0], pair[1]};
    memset(pair, 0, sizeof(lines));
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned used = lines[i].state & ML_LIVE_USED_MASK; used != 0; used &= used - 1) {
            const unsigned slot = (unsigned)__builtin_ctz(used);
            place(map, slot_hash(&lines[i], slot), lines[i].rest[slot]);
        }
    }
}

/* Put the blocks of the lines [0, count) into the map's. They may be the map's own first ones: a
 * block's pair lies at or behind the one it was in among fewer, so that from the last pair down
 * each is read before anything is put there. Returns how many lines are still as they were: more
 * were turned away than there is memory for. */
static size_t spread(struct ml_live_map *map, struct ml_live_line *lines, size_t count) {
    while (count > 0 && ml_live_away_reserve(&map->away, PAIR_SLOTS) == ML_OK) {
        count -= 2;
        spread_pair(map, &lines[count]);
    }
    return count;
}

/* Those that were turned away before. False: there is no memory. */
static bool spread_away(struct ml_live_map *map, const struct ml_live_away *away) {
    if (ml_live_away_reserve(&map->away, away->count) != ML_OK) {
        return false;
    }
    for (size_t i = 0; i < away->capacity; i++) {
        if (away->entries[i].hash != 0) {
            place(map, away->entries[i].hash, away->entries[i].rest);
        }
    }
    return true;
}

static void set_lines(struct ml_live_map *map, struct ml_live_line *lines, size_t lines_count) {
    map->lines = lines;
    map->lines_count = lines_count;
    map->count_max = lines_count * FULL / FULL_OF;
}

/* Undo a spread that reached down to `start`: every block came out of its pair's slots, so that is
 * where it finds one. From the first pair up, as above. `away` are those turned away before. */
static void
gather(struct ml_live_map *map, size_t start, size_t count, const struct ml_live_away *away) {
    const size_t end = map->lines_count;
    const struct ml_live_away turned_away = map->away;
    set_lines(map, map->lines, count);
    for (size_t i = start; i < end; i += 2) {
        spread_pair(map, &map->lines[i]);
    }
    for (size_t i = 0; i < turned_away.capacity; i++) {
        if (turned_away.entries[i].hash != 0) {
            place(map, turned_away.entries[i].hash, turned_away.entries[i].rest);
        }
    }
    for (size_t i = 0; i < away->capacity; i++) {
        if (away->entries[i].hash != 0 && ml_live_home(away->entries[i].hash, count) >= start) {
            turn_away(ml_live_map_home(map, away->entries[i].hash));
        }
    }
}

/* More lines. Errors: ML_ENV_MEMORY: all blocks are as they were. */
static enum ml_status grow(struct ml_live_map *map, size_t lines_count) {
    struct ml_live_line *lines = map->lines;
    if (lines_count > map->lines_capacity) {
        lines = lines_count > LINES_MAX ? NULL
                                        : ml_budget_grow_table(
                                              map->budget,
                                              map->lines,
                                              map->lines_capacity * sizeof(*lines),
                                              lines_count * sizeof(*lines)
                                          );
        if (lines == NULL) {
            return ML_ENV_MEMORY;
        }
        map->lines_capacity = lines_count;
    }
    const size_t old_count = map->lines_count;
    struct ml_live_away old_away = map->away;
    ml_live_away_init(&map->away, map->budget);
    set_lines(map, lines, lines_count);
    const size_t left = spread(map, lines, old_count);
    if (left > 0 || !spread_away(map, &old_away)) {
        gather(map, left, old_count, &old_away);
        ml_live_away_fini(&map->away);
        map->away = old_away;
        return ML_ENV_MEMORY;
    }
    ml_live_away_fini(&old_away);
    return ML_OK;
}

/* Fewer lines, of their own memory. When there is none for them, all stays as it is. */
static void shrink(struct ml_live_map *map, size_t lines_count) {
    struct ml_live_away away;
    ml_live_away_init(&away, map->budget);
    /* For as many as can come, so that it cannot fail half-way. */
    if (ml_live_away_reserve(&away, map->count + PAIR_SLOTS) != ML_OK) {
        return;
    }
    struct ml_live_line *lines = ml_budget_new_table(map->budget, lines_count * sizeof(*lines));
    if (lines == NULL) {
        ml_live_away_fini(&away);
        return;
    }
    struct ml_live_map old = *map;
    map->away = away;
    map->lines_capacity = lines_count;
    set_lines(map, lines, lines_count);
    (void)spread(map, old.lines, old.lines_count);
    (void)spread_away(map, &old.away);
    ml_live_away_fini(&old.away);
    ml_budget_free_table(map->budget, old.lines, old.lines_capacity * sizeof(*lines));
    ml_live_away_shrink(&map->away, 0);
}

/* Lines come in thirties: what is full of them is then a whole number, and so are pairs. In a huge
 * table they fill whole huge pages. */
static size_t unit_of(size_t lines_count) {
    const size_t page_lines = ML_HUGE_PAGE_BYTES / sizeof(struct ml_live_line);
    return lines_count < ML_HUGE_TABLE_BYTES / sizeof(struct ml_live_line) ? FULL_OF : page_lines;
}

static size_t lines_for(size_t blocks) {
    const size_t lines = blocks / FULL * FULL_OF + FULL_OF;
    return (lines + unit_of(lines) - 1) / unit_of(lines) * unit_of(lines);
}

enum ml_status ml_live_map_reserve_more(struct ml_live_map *map, size_t count) {
    if (map->closed) {
        return ML_ENV_MEMORY;
    }
    if (map->count_max - map->count < count) {
        const size_t needed = lines_for(map->count + count);
        const size_t grown = map->lines_count + map->lines_count / GROWTH_PART;
        const size_t whole = grown / unit_of(grown) * unit_of(grown);
        const enum ml_status status = grow(map, whole < needed ? needed : whole);
        if (status != ML_OK) {
            return status;
        }
        ml_live_away_shrink(&map->away, count);
    }
    return ml_live_away_reserve(&map->away, count);
}

void ml_live_map_trim(struct ml_live_map *map) {
    /* A sixth in use is far below what growing leaves, so the two do not alternate. */
    const bool low = map->lines_count > TRIM_LINES && map->count < map->count_max / 6;
    map->low_rounds = low ? map->low_rounds + 1 : 0;
    if (map->low_rounds == TRIM_ROUNDS) {
        map->low_rounds = 0;
        shrink(map, lines_for(map->count + map->count / 3));
    }
}

/* ---- for tests */

bool ml_live_map_next(
    const struct ml_live_map *map, size_t *cursor, struct ml_live_block *out_block
) {
    const size_t slots_count = map->lines_count * ML_LIVE_LINE_SLOTS;
    while (*cursor < slots_count) {
        const struct ml_live_line *line = &map->lines[*cursor / ML_LIVE_LINE_SLOTS];
        const unsigned slot = (unsigned)(*cursor % ML_LIVE_LINE_SLOTS);
        (*cursor)++;
        if ((line->state >> slot & 1) != 0) {
            *out_block = unpack(map, line->rest[slot]);
            return true;
        }
    }
    while (*cursor - slots_count < map->away.capacity) {
        const struct ml_live_away_entry *entry = &map->away.entries[*cursor - slots_count];
        (*cursor)++;
        if (entry->hash != 0) {
            *out_block = unpack(map, entry->rest);
            return true;
        }
    }
    return false;
}

/* Used slots hold blocks that belong there, the others nothing; counts the former. Takes those that
 * are not at home off their homes' counts. */
static bool
check_line(const struct ml_live_map *map, size_t index, unsigned *in_other, size_t *count) {
    const struct ml_live_line *line = &map->lines[index];
    for (unsigned slot = 0; slot < ML_LIVE_LINE_SLOTS; slot++) {
        const bool used = (line->state >> slot & 1) != 0;
        const size_t home = used ? ml_live_home(slot_hash(line, slot), map->lines_count) : index;
        if (home / 2 != index / 2 || (!used && (line->low[slot] != 0 || line->rest[slot] != 0))) {
            return false;
        }
        *count += used;
        *in_other -= home != index;
    }
    return true;
}

static bool check_pair(const struct ml_live_map *map, size_t index, size_t *count) {
    unsigned first = map->lines[index].state / ML_LIVE_IN_OTHER % 8;
    unsigned second = map->lines[index + 1].state / ML_LIVE_IN_OTHER % 8;
    return check_line(map, index, &second, count) && check_line(map, index + 1, &first, count) &&
           first == 0 && second == 0;
}

bool ml_live_map_check(const struct ml_live_map *map) {
    size_t used = 0;
    size_t turned_away = 0;
    bool kept = true;
    for (size_t i = 0; i < map->lines_count; i++) {
        if (i % 2 == 0 && !check_pair(map, i, &used)) {
            return false;
        }
        turned_away += map->lines[i].state / ML_LIVE_TURNED_AWAY;
        kept = kept && map->lines[i].state < AWAY_MAX;
    }
    for (size_t i = 0; i < map->away.capacity; i++) {
        const struct ml_live_away_entry *entry = &map->away.entries[i];
        if (entry->hash == 0) {
            continue;
        }
        used++;
        if (!ml_live_line_has_away(ml_live_map_home(map, entry->hash)) ||
            ml_live_away_find(&map->away, entry->hash, NULL) == NULL) {
            return false;
        }
    }
    return used == map->count && (!kept || turned_away == map->away.count);
}
