/* Growing and shrinking a live map, in place and in steps. A pair of lines is read whole, and its
 * blocks go to their homes among the new number of lines. Growing, these are at or behind the pair,
 * so the last pair is moved first; shrinking, at or before it, so the first is. Either way unread
 * lines are never overwritten, however often the direction changes. */
#include <string.h>

#include "service/heap/live_map_internal.h"

enum {
    /* While a process grows, 2.75 to 3.43 of a line's five slots are used: 19 to 23 bytes a block.
     * 4 to 7 in a hundred then find their home full, 1 to 3 the line beside it too. Fuller lines
     * mean more of these; smaller growth steps mean moving all more often. */
    FULL = 103,
    FULL_OF = 30,
    GROWTH_PART = 4,
    OVERFLOW_OF = 8, /* an eighth of what lines take: the overflow table's, while it grows */
    PAIR_SLOTS = 2 * ML_LIVE_LINE_SLOTS,
    /* Lines moved for each block reserved: growing is done after as many blocks as an eighth of the
     * lines, and there is room for at least three times as many. */
    STEP_EACH = 8,
    /* Rounds of few blocks before memory is given back: a program that fills and empties its heap
     * in turns pays for growing once. */
    TRIM_ROUNDS = 64,
    TRIM_LINES = 1024,             /* 64 KiB are kept */
    TRIM_STEP_LINES = 16 * 1024,   /* a round, nearly empty ones: 1 MiB */
    WHOLE_PAGES_LINES = 128 << 10, /* 8 MiB: below, a huge page is too much of it to round up to */
};

/* 128 GiB; the hash's upper half tells that many lines apart. */
#define LINES_MAX ((size_t)1 << 31)

/* How many blocks fill so many lines. */
static size_t full_of(size_t lines_count) {
    return lines_count * FULL / FULL_OF;
}

/* Lines come in thirties: what is full of them is then a whole number, and so are pairs. Many fill
 * whole huge pages. */
static size_t unit_of(size_t lines_count) {
    const size_t page_lines = ML_HUGE_PAGE_BYTES / sizeof(struct ml_live_line);
    return lines_count < WHOLE_PAGES_LINES ? FULL_OF : page_lines;
}

static size_t lines_for(size_t blocks) {
    const size_t lines = blocks / FULL * FULL_OF + FULL_OF;
    return (lines + unit_of(lines) - 1) / unit_of(lines) * unit_of(lines);
}

/* A quarter more. With a smaller step growing would not end before it has to begin again. */
static size_t grown_lines(size_t lines_count) {
    const size_t grown = lines_count + lines_count / GROWTH_PART;
    const size_t whole = grown / unit_of(grown) * unit_of(grown);
    return whole < lines_count + lines_count / (2 * GROWTH_PART) ? grown / FULL_OF * FULL_OF
                                                                 : whole;
}

/* ---- moving lines */

/* The upper half of the first hash whose home among so many lines is `line` or behind it. */
static uint64_t first_of(size_t line, size_t lines_count) {
    return (((uint64_t)line << 32) + lines_count - 1) / lines_count;
}

/* Read a pair, and put its blocks where they belong among so many lines. The overflow table has
 * room for all of them; its entries are not counted here. */
static void move_pair(struct ml_live_map *map, struct ml_live_line *pair, size_t lines_count) {
    const struct ml_live_line lines[2] = {pair[0], pair[1]};
    memset(pair, 0, sizeof(lines));
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned used = lines[i].state & ML_LIVE_USED_MASK; used != 0; used &= used - 1) {
            const unsigned slot = (unsigned)__builtin_ctz(used);
            const uint64_t hash = ml_live_slot_hash(&lines[i], slot);
            struct ml_live_line *home = map->lines + ml_live_home(hash, lines_count);
            if (!ml_live_line_place(map, home, hash, lines[i].rest[slot])) {
                ml_live_overflow_put(&map->overflow, hash, lines[i].rest[slot]);
            }
            map->moved++;
        }
    }
}

/* Overflow blocks may now fit at home; the moved lines do not count them yet. */
struct settling {
    struct ml_live_map *map;
    size_t lines_count;
};

static bool settle_one(void *context, const struct ml_live_overflow_entry *entry) {
    const struct settling *settling = context;
    struct ml_live_map *map = settling->map;
    struct ml_live_line *home = map->lines + ml_live_home(entry->hash, settling->lines_count);
    map->moved++;
    if (ml_live_line_place(map, home, entry->hash, entry->rest)) {
        return true;
    }
    ml_live_line_add_overflow(home);
    return false;
}

/* The lines of all hashes of [from, to) are moved among so many. */
static void settle(struct ml_live_map *map, uint64_t from, uint64_t to, size_t lines_count) {
    struct settling settling = {.map = map, .lines_count = lines_count};
    if (from < to) {
        ml_live_overflow_visit(&map->overflow, from, to, settle_one, &settling);
    }
}

/* Move so many of the fewer lines, from the last one down, to where they belong among the more.
 * Errors: ML_ENV_MEMORY: none was moved. */
static enum ml_status step_up(struct ml_live_map *map, size_t lines) {
    const uint64_t end = map->split;
    size_t pairs = ml_live_home((end - 1) << 32, map->few_count) / 2 + 1;
    const size_t stop = pairs > lines / 2 ? pairs - lines / 2 : 0;
    while (pairs > stop && ml_live_overflow_reserve(&map->overflow, PAIR_SLOTS) == ML_OK) {
        pairs--;
        move_pair(map, &map->lines[pairs * 2], map->lines_count);
    }
    const uint64_t reached = first_of(pairs * 2, map->few_count);
    map->split = reached < end ? reached : end;
    settle(map, map->split, end, map->lines_count);
    return map->split < end ? ML_OK : ML_ENV_MEMORY;
}

/* The opposite: move lines from the first one up to among the fewer, as far as memory permits. */
static void step_down(struct ml_live_map *map, size_t lines) {
    const uint64_t start = map->split;
    const size_t pairs = map->lines_count / 2;
    size_t pair = ml_live_home(start << 32, map->lines_count) / 2;
    const size_t stop = pairs - pair > lines / 2 ? pair + lines / 2 : pairs;
    while (pair < stop && ml_live_overflow_reserve(&map->overflow, PAIR_SLOTS) == ML_OK) {
        move_pair(map, &map->lines[pair * 2], map->few_count);
        pair++;
    }
    const uint64_t reached = first_of(pair * 2, map->lines_count);
    map->split = reached > start ? reached : start;
    settle(map, start, map->split, map->few_count);
}

/* ---- growing */

/* More lines, none of them moved yet. Errors: ML_ENV_MEMORY. */
static enum ml_status begin_growing(struct ml_live_map *map, size_t lines_count) {
    if (lines_count > LINES_MAX) {
        return ML_ENV_MEMORY;
    }
    if (lines_count > map->lines_capacity) {
        struct ml_live_line *lines = ml_budget_grow_table(
            map->budget,
            map->lines,
            map->lines_capacity * sizeof(*lines),
            lines_count * sizeof(*lines)
        );
        if (lines == NULL) {
            return ML_ENV_MEMORY;
        }
        map->lines = lines;
        map->lines_capacity = lines_count;
    }
    map->few_count = map->lines_count;
    map->lines_count = lines_count;
    if (map->few_count == 0) {
        map->count_max = full_of(lines_count);
        return ML_OK;
    }
    map->split = ML_LIVE_SPLIT_END;
    map->change = ML_LIVE_GROWING;
    return ML_OK;
}

/* The next number of lines, where so many blocks are there and more are to come. */
static size_t next_lines(size_t lines_count, size_t blocks) {
    const size_t grown = grown_lines(lines_count);
    const size_t needed = lines_for(blocks);
    return grown < needed ? needed : grown;
}

uint64_t ml_live_map_more_bytes(const struct ml_live_map *map, size_t blocks) {
    size_t lines = map->lines_count;
    while (full_of(lines) < map->count + blocks) {
        lines = next_lines(lines, full_of(lines) + 1);
    }
    const size_t more = lines > map->lines_capacity ? lines - map->lines_capacity : 0;
    return more * sizeof(*map->lines) / OVERFLOW_OF * (OVERFLOW_OF + 1);
}

/* One step, for so many blocks. Until growing is done each reserve comes here. */
static enum ml_status grow_on(struct ml_live_map *map, size_t count) {
    const size_t lines = count > map->step_lines / STEP_EACH ? count * STEP_EACH : map->step_lines;
    const size_t full = full_of(map->lines_count);
    if (map->split > 0) {
        const enum ml_status status = step_up(map, lines);
        if (status != ML_OK) {
            return status;
        }
    }
    if (map->split == 0) {
        map->change = ML_LIVE_SETTLED;
        map->count_max = full;
        ml_live_overflow_shrink(&map->overflow, count);
    } else if (full - map->count >= count) {
        map->count_max = map->count + count;
    }
    return ML_OK;
}

enum ml_status ml_live_map_reserve_more(struct ml_live_map *map, size_t count) {
    if (map->closed) {
        return ML_ENV_MEMORY;
    }
    while (map->count_max - map->count < count) {
        if (map->change == ML_LIVE_SETTLED) {
            const enum ml_status status =
                begin_growing(map, next_lines(map->lines_count, map->count + count));
            if (status != ML_OK) {
                return status;
            }
        } else {
            map->change = ML_LIVE_GROWING; /* also where it has shrunk so far */
            const enum ml_status status = grow_on(map, count);
            if (status != ML_OK) {
                return status;
            }
        }
    }
    return ml_live_overflow_reserve(&map->overflow, count);
}

/* ---- shrinking */

static void begin_shrinking(struct ml_live_map *map) {
    if (map->change == ML_LIVE_SETTLED) {
        map->few_count = lines_for(map->count + map->count / 3);
    }
    map->change = ML_LIVE_SHRINKING;
    map->count_max = full_of(map->few_count);
}

/* All blocks are among the fewer lines: give back the others. */
static void end_shrinking(struct ml_live_map *map) {
    map->change = ML_LIVE_SETTLED;
    map->split = 0;
    map->lines_count = map->few_count;
    struct ml_live_line *lines = ml_budget_shrink_table(
        map->budget,
        map->lines,
        map->lines_capacity * sizeof(*lines),
        map->lines_count * sizeof(*lines)
    );
    if (lines != NULL) {
        map->lines = lines;
        map->lines_capacity = map->lines_count;
    }
    ml_live_overflow_shrink(&map->overflow, 0);
}

void ml_live_map_trim(struct ml_live_map *map) {
    if (map->change == ML_LIVE_SHRINKING) {
        step_down(map, TRIM_STEP_LINES);
        if (map->split == ML_LIVE_SPLIT_END) {
            end_shrinking(map);
        }
        return;
    }
    /* A sixth in use is far below what growing leaves, so the two do not alternate. */
    const bool low = map->lines_count > TRIM_LINES && map->count < full_of(map->lines_count) / 6;
    map->low_rounds = low ? map->low_rounds + 1 : 0;
    if (map->low_rounds == TRIM_ROUNDS) {
        map->low_rounds = 0;
        begin_shrinking(map);
    }
}
