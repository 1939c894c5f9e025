/* The blocks of a live map one after another. A slot has the hash in place of the key, so the hash
 * is taken back: each step of ml_live_map_hash is undone, the last one first. */
#include "service/heap/live_map_internal.h"

struct walk {
    const struct ml_live_map *map;
    uint64_t factor_inverse, golden_inverse;
    bool (*show)(void *context, uint64_t address, unsigned heap, const struct ml_live_block *block);
    void *context;
};

/* The inverse of an odd number modulo 2^64: each step doubles the bits that are right. */
static uint64_t inverse_of(uint64_t odd) {
    uint64_t inverse = odd; /* right in three bits */
    for (int bits = 3; bits < 64; bits *= 2) {
        inverse *= 2 - odd * inverse;
    }
    return inverse;
}

static uint64_t key_of(const struct walk *walk, uint64_t hash) {
    const uint64_t mask = UINT64_MAX << ML_LIVE_HASH_SHIFT;
    const uint64_t mixed = hash * walk->golden_inverse;
    uint64_t product = mixed;
    for (int known = 27; known < 64; known += 27) {
        product = mixed ^ (product >> 27 & mask);
    }
    const uint64_t shifted = product * walk->factor_inverse;
    return (shifted & ML_LIVE_HEAP_MASK) | (shifted & ~ML_LIVE_HEAP_MASK) >> 8;
}

static bool show(const struct walk *walk, uint64_t hash, uint64_t rest) {
    const struct ml_live_block block = ml_live_unpack(walk->map, rest);
    const uint64_t key =
        ml_live_is_wide(rest) ? ml_live_wide_key(walk->map, rest) : key_of(walk, hash);
    return walk->show(walk->context, key & ~ML_LIVE_HEAP_MASK, (unsigned)(key >> 56), &block);
}

static bool show_lines(const struct walk *walk) {
    for (size_t i = 0; i < walk->map->lines_count; i++) {
        const struct ml_live_line *line = &walk->map->lines[i];
        for (unsigned used = line->state & ML_LIVE_USED_MASK; used != 0; used &= used - 1) {
            const unsigned slot = (unsigned)__builtin_ctz(used);
            if (!show(walk, ml_live_slot_hash(line, slot), line->rest[slot])) {
                return false;
            }
        }
    }
    return true;
}

static bool show_overflow(const struct walk *walk, const struct ml_live_overflow_table *table) {
    for (size_t i = 0; i < table->capacity; i++) {
        const struct ml_live_overflow_entry *entry = &table->entries[i];
        if (entry->hash != 0 && !show(walk, entry->hash, entry->rest)) {
            return false;
        }
    }
    return true;
}

void ml_live_map_walk(
    const struct ml_live_map *map,
    bool (*show_block
    )(void *context, uint64_t address, unsigned heap, const struct ml_live_block *block),
    void *context
) {
    const struct walk walk = {
        .map = map,
        .factor_inverse = inverse_of(map->factor),
        .golden_inverse = inverse_of(UINT64_C(0x9e3779b97f4a7c15)),
        .show = show_block,
        .context = context};
    if (show_lines(&walk) && show_overflow(&walk, &map->overflow.now)) {
        (void)show_overflow(&walk, &map->overflow.before);
    }
}
