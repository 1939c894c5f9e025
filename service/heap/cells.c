#include "service/heap/cells.h"

#include <string.h>

#include "service/heap/live_map.h"

_Static_assert(
    ML_CELLS_NUMBER_MASK == ML_LIVE_CELLS_MAX - 1, "all numbers fit, but for the very last"
);

void ml_cells_init(struct ml_cells *cells, struct ml_budget *budget) {
    *cells = (struct ml_cells){.budget = budget};
}

void ml_cells_fini(struct ml_cells *cells) {
    ml_budget_free_table(cells->budget, cells->cells, cells->capacity * sizeof(*cells->cells));
    ml_budget_free_table(
        cells->budget, cells->index, cells->index_capacity * sizeof(*cells->index)
    );
    *cells = (struct ml_cells){.budget = cells->budget};
}

/* The first empty entry of a bucket, NULL if it is full. */
static uint32_t *empty_entry(uint32_t *bucket) {
    for (uint32_t *entry = bucket; entry < bucket + ML_CELLS_BUCKET; entry++) {
        if (*entry == 0) {
            return entry;
        }
    }
    return NULL;
}

/* The entry of that key, or the empty one where it belongs. */
static uint32_t *entry_of(const struct ml_cells *cells, uint64_t key, uint64_t hash) {
    uint32_t at = ml_cells_bucket(hash, cells->index_capacity);
    for (;;) {
        uint32_t *const bucket = &cells->index[at];
        unsigned left = ml_cells_match(bucket, ml_cells_tag(hash));
        for (; left != 0; left &= left - 1) {
            uint32_t *entry = &bucket[__builtin_ctz(left)];
            if (*entry == 0 || cells->cells[(*entry & ML_CELLS_NUMBER_MASK) - 1].key == key) {
                return entry;
            }
        }
        uint32_t *const empty = empty_entry(bucket);
        if (empty != NULL) {
            return empty;
        }
        at = (at + ML_CELLS_BUCKET) & (cells->index_capacity - 1);
    }
}

static enum ml_status grow_index(struct ml_cells *cells) {
    const uint32_t capacity = cells->index_capacity == 0 ? 64 : cells->index_capacity * 2;
    uint32_t *const old = cells->index;
    const uint32_t old_capacity = cells->index_capacity;
    uint32_t *index = ml_budget_new_table(cells->budget, capacity * sizeof(*index));
    if (index == NULL) {
        return ML_ENV_MEMORY;
    }
    cells->index = index;
    cells->index_capacity = capacity;
    for (uint32_t i = 0; i < cells->count; i++) {
        const uint64_t hash = ml_cells_hash(cells->cells[i].key);
        *entry_of(cells, cells->cells[i].key, hash) = (i + 1) | ml_cells_tag(hash);
    }
    ml_budget_free_table(cells->budget, old, old_capacity * sizeof(*old));
    return ML_OK;
}

static enum ml_status grow_cells(struct ml_cells *cells) {
    if (cells->count == ML_CELLS_NUMBER_MASK) {
        return ML_PEER_LIMIT;
    }
    /* Grow by little, so that a cell costs no more than 100 bytes, spare room included. The kernel
     * moves all but small tables by remapping, without a copy. */
    const uint32_t capacity = cells->capacity + cells->capacity / 64 + 8;
    struct ml_cell *grown = ml_budget_grow_table(
        cells->budget, cells->cells, cells->capacity * sizeof(*grown), capacity * sizeof(*grown)
    );
    if (grown == NULL) {
        return ML_ENV_MEMORY;
    }
    cells->cells = grown;
    cells->capacity = capacity;
    return ML_OK;
}

/* Swap a found cell into the first bucket of its search, so that ml_cells_guess finds frequent
 * cells. The entry swapped out is searched for from the same bucket or one before it, and all
 * buckets from there to its new place are full. */
static void bring_home(struct ml_cells *cells, uint32_t *entry, uint64_t hash) {
    uint32_t *const home = &cells->index[ml_cells_bucket(hash, cells->index_capacity)];
    if (entry < home || entry >= home + ML_CELLS_BUCKET) {
        uint32_t *const other = &home[*entry % ML_CELLS_BUCKET];
        const uint32_t moved = *other;
        *other = *entry;
        *entry = moved;
    }
}

enum ml_status
ml_cells_make(struct ml_cells *cells, uint64_t key, uint64_t hash, uint32_t *out_cell) {
    /* At most four fifths full: few find their bucket full, and a cell costs 5 to 10 bytes
     * here. */
    if (cells->count >= cells->index_capacity / 5 * 4) {
        const enum ml_status status = grow_index(cells);
        if (status != ML_OK) {
            return status;
        }
    }
    uint32_t *entry = entry_of(cells, key, hash);
    if (*entry == 0) {
        if (cells->count == cells->capacity) {
            const enum ml_status status = grow_cells(cells);
            if (status != ML_OK) {
                return status;
            }
        }
        cells->cells[cells->count] = (struct ml_cell){.key = key};
        cells->count++;
        *entry = cells->count | ml_cells_tag(hash);
    }
    *out_cell = (*entry & ML_CELLS_NUMBER_MASK) - 1;
    bring_home(cells, entry, hash);
    return ML_OK;
}
