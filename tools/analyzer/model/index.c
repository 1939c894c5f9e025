#include "tools/analyzer/model/index.h"

#include <stdlib.h>

#include "tools/analyzer/model/memory.h"

enum { FIRST_SLOTS = 64 };

void ml_index_fini(struct ml_index *index) {
    free(index->slots);
    *index = (struct ml_index){0};
}

static uint32_t probe(const struct ml_index *index, uint64_t hash, size_t *at) {
    while (index->slots[*at].item != 0) {
        if (index->slots[*at].hash == hash) {
            return index->slots[*at].item - 1;
        }
        *at = (*at + 1) & (index->slots_count - 1);
    }
    return ML_INDEX_NONE;
}

uint32_t ml_index_first(const struct ml_index *index, uint64_t hash, size_t *out_at) {
    if (index->slots_count == 0) {
        return ML_INDEX_NONE;
    }
    *out_at = ml_hash_index(hash, index->slots_count);
    return probe(index, hash, out_at);
}

uint32_t ml_index_next(const struct ml_index *index, uint64_t hash, size_t *at) {
    *at = (*at + 1) & (index->slots_count - 1);
    return probe(index, hash, at);
}

static void place(struct ml_index *index, struct ml_index_slot slot) {
    size_t at = ml_hash_index(slot.hash, index->slots_count);

    while (index->slots[at].item != 0) {
        at = (at + 1) & (index->slots_count - 1);
    }
    index->slots[at] = slot;
}

/* Half full at most: chains stay short, and a free slot ends every probe. */
static bool make_room(struct ml_index *index) {
    struct ml_index grown = {.count = index->count};

    if (index->count * 2 < index->slots_count) {
        return true;
    }
    grown.slots_count = index->slots_count ? index->slots_count * 2 : FIRST_SLOTS;
    grown.slots = calloc(grown.slots_count, sizeof *grown.slots);
    if (!grown.slots) {
        return false;
    }
    for (size_t i = 0; i < index->slots_count; i++) {
        if (index->slots[i].item != 0) {
            place(&grown, index->slots[i]);
        }
    }
    free(index->slots);
    *index = grown;
    return true;
}

bool ml_index_add(struct ml_index *index, uint64_t hash, uint32_t item) {
    if (!make_room(index)) {
        return false;
    }
    place(index, (struct ml_index_slot){.hash = hash, .item = item + 1});
    index->count++;
    return true;
}
