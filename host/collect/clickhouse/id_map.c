#include "host/collect/clickhouse/id_map.h"

#include <stdlib.h>

void ml_id_map_fini(struct ml_id_map *map) {
    free(map->slots);
    *map = (struct ml_id_map){.slots = NULL};
}

/* Where it stands, or would. */
static struct ml_id_map_entry *slot_of(const struct ml_id_map *map, int64_t id) {
    size_t at = (size_t)id & (map->slots_count - 1);
    while (map->slots[at].id != 0 && map->slots[at].id != id) {
        at = (at + 1) & (map->slots_count - 1);
    }
    return &map->slots[at];
}

const struct ml_id_map_entry *ml_id_map_find(const struct ml_id_map *map, int64_t id) {
    if (map->slots_count == 0 || id == 0) {
        return NULL;
    }
    const struct ml_id_map_entry *slot = slot_of(map, id);
    return slot->id != 0 ? slot : NULL;
}

static bool grow(struct ml_id_map *map) {
    enum { FIRST = 1024 };
    const size_t wanted = map->slots_count > 0 ? 2 * map->slots_count : FIRST;
    struct ml_id_map grown = {
        .slots = calloc(wanted, sizeof(*grown.slots)), .slots_count = wanted, .count = map->count};
    if (grown.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->slots_count; i++) {
        if (map->slots[i].id != 0) {
            *slot_of(&grown, map->slots[i].id) = map->slots[i];
        }
    }
    free(map->slots);
    *map = grown;
    return true;
}

bool ml_id_map_put(struct ml_id_map *map, struct ml_id_map_entry entry) {
    if (entry.id == 0) {
        return true;
    }
    if (2 * map->count >= map->slots_count && !grow(map)) {
        return false;
    }
    struct ml_id_map_entry *slot = slot_of(map, entry.id);
    map->count += slot->id == 0;
    *slot = entry;
    return true;
}
