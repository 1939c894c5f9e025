#include "service/cells.h"

#include <string.h>

#include "service/live_map.h"

/* A cell's number + 1 in an entry of the index; all numbers fit, but for the very last. */
enum { NUMBER_MASK = ML_LIVE_CELLS_MAX - 1 };

void ml_cells_init(struct ml_cells *cells, struct ml_budget *budget) {
    *cells = (struct ml_cells){.budget = budget};
}

void ml_cells_fini(struct ml_cells *cells) {
    ml_budget_free_table(cells->budget, cells->cells, cells->capacity * sizeof(*cells->cells));
    ml_budget_free(cells->budget, cells->index, cells->index_capacity * sizeof(*cells->index));
    *cells = (struct ml_cells){.budget = cells->budget};
}

/* The place of that key in the index, or the empty one where it belongs. */
static uint32_t *place_of(const struct ml_cells *cells, uint64_t key, uint64_t hash) {
    const uint32_t mask = cells->index_capacity - 1;
    uint32_t place = ml_cells_place(hash, mask);
    const uint32_t tag = ml_cells_tag(hash);
    while (cells->index[place] != 0 &&
           ((cells->index[place] & ~(uint32_t)NUMBER_MASK) != tag ||
            cells->cells[(cells->index[place] & NUMBER_MASK) - 1].key != key)) {
        place = (place + 1) & mask;
    }
    return &cells->index[place];
}

static enum ml_status grow_index(struct ml_cells *cells) {
    const uint32_t capacity = cells->index_capacity == 0 ? 64 : cells->index_capacity * 2;
    uint32_t *const old = cells->index;
    const uint32_t old_capacity = cells->index_capacity;
    uint32_t *index = ml_budget_new(cells->budget, capacity * sizeof(*index));
    if (index == NULL) {
        return ML_ENV_MEMORY;
    }
    cells->index = index;
    cells->index_capacity = capacity;
    for (uint32_t i = 0; i < cells->count; i++) {
        const uint64_t hash = ml_cells_hash(cells->cells[i].key);
        *place_of(cells, cells->cells[i].key, hash) = (i + 1) | ml_cells_tag(hash);
    }
    ml_budget_free(cells->budget, old, old_capacity * sizeof(*old));
    return ML_OK;
}

static enum ml_status grow_cells(struct ml_cells *cells) {
    if (cells->count == NUMBER_MASK) {
        return ML_PEER_LIMIT;
    }
    /* By little, so that a cell costs no more than 100 bytes with all that is spare: all but small
     * tables are moved by the kernel, which copies nothing. */
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

enum ml_status
ml_cells_make(struct ml_cells *cells, uint64_t key, uint64_t hash, uint32_t *out_cell) {
    /* At most four fifths full: probes stay on a cache line or two, and a cell costs 5 to 10 bytes
     * here. */
    if (cells->count >= cells->index_capacity / 5 * 4) {
        const enum ml_status status = grow_index(cells);
        if (status != ML_OK) {
            return status;
        }
    }
    uint32_t *place = place_of(cells, key, hash);
    if (*place == 0) {
        if (cells->count == cells->capacity) {
            const enum ml_status status = grow_cells(cells);
            if (status != ML_OK) {
                return status;
            }
        }
        cells->cells[cells->count] = (struct ml_cell){.key = key};
        cells->count++;
        *place = cells->count | ml_cells_tag(hash);
    }
    *out_cell = (*place & NUMBER_MASK) - 1;
    return ML_OK;
}
