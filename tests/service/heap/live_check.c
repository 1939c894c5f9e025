#include "service/heap/live_map_internal.h"
#include "tests/service/heap/checks.h"

/* The next entry at or behind *cursor (start with 0); NULL at the end. */
static const struct ml_live_overflow_entry *
overflow_next(const struct ml_live_overflow *overflow, size_t *cursor) {
    while (*cursor < overflow->now.capacity + overflow->before.capacity) {
        const size_t place = (*cursor)++;
        const struct ml_live_overflow_entry *entry =
            place < overflow->now.capacity
                ? &overflow->now.entries[place]
                : &overflow->before.entries[place - overflow->now.capacity];
        if (entry->hash != 0) {
            return entry;
        }
    }
    return NULL;
}

bool ml_live_map_next(
    const struct ml_live_map *map, size_t *cursor, struct ml_live_block *out_block
) {
    const size_t slots_count = map->lines_count * ML_LIVE_LINE_SLOTS;
    while (*cursor < slots_count) {
        const struct ml_live_line *line = &map->lines[*cursor / ML_LIVE_LINE_SLOTS];
        const unsigned slot = (unsigned)(*cursor % ML_LIVE_LINE_SLOTS);
        (*cursor)++;
        if ((line->state >> slot & 1) != 0) {
            *out_block = ml_live_unpack(map, line->rest[slot]);
            return true;
        }
    }
    size_t place = *cursor - slots_count;
    const struct ml_live_overflow_entry *entry = overflow_next(&map->overflow, &place);
    *cursor = slots_count + place;
    if (entry != NULL) {
        *out_block = ml_live_unpack(map, entry->rest);
    }
    return entry != NULL;
}

/* Used slots hold blocks that belong there, the others are empty; counts the former. Subtracts
 * blocks that are not at home from their homes' counts. */
static bool
check_line(const struct ml_live_map *map, size_t index, unsigned *in_other, size_t *count) {
    const struct ml_live_line *line = &map->lines[index];
    for (unsigned slot = 0; slot < ML_LIVE_LINE_SLOTS; slot++) {
        const bool used = (line->state >> slot & 1) != 0;
        const size_t home =
            used ? ml_live_map_home_index(map, ml_live_slot_hash(line, slot)) : index;
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

/* The old or the new number of lines, by the resize in progress. */
static bool check_change(const struct ml_live_map *map) {
    return map->count <= map->count_max && map->lines_count <= map->lines_capacity &&
           map->few_count <= map->lines_count && map->split <= ML_LIVE_SPLIT_END &&
           (map->change == ML_LIVE_SHRINKING || (map->split > 0) == (map->change == ML_LIVE_GROWING)
           );
}

bool ml_live_map_check(const struct ml_live_map *map) {
    size_t used = 0;
    size_t turned_away = 0;
    size_t cursor = 0;
    bool kept = true;
    if (!check_change(map)) {
        return false;
    }
    for (size_t i = 0; i < map->lines_count; i++) {
        if (i % 2 == 0 && !check_pair(map, i, &used)) {
            return false;
        }
        turned_away += map->lines[i].state / ML_LIVE_TURNED_AWAY;
        kept = kept && map->lines[i].state < ML_LIVE_OVERFLOW_MAX;
    }
    const struct ml_live_overflow_entry *entry = overflow_next(&map->overflow, &cursor);
    for (; entry != NULL; entry = overflow_next(&map->overflow, &cursor)) {
        used++;
        if (!ml_live_line_has_overflow(ml_live_map_home(map, entry->hash)) ||
            ml_live_overflow_find(&map->overflow, entry->hash, NULL) == NULL) {
            return false;
        }
    }
    return used == map->count && (!kept || turned_away == ml_live_overflow_count(&map->overflow));
}
