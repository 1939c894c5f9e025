#include "service/cells.h"

#include <string.h>

#include "service/live_map.h"

void ml_cells_init(struct ml_cells *cells, struct ml_budget *budget) {
    *cells = (struct ml_cells){.budget = budget};
}

void ml_cells_fini(struct ml_cells *cells) {
    ml_budget_free(cells->budget, cells->cells, cells->capacity * sizeof(*cells->cells));
    ml_budget_free(cells->budget, cells->index, cells->index_capacity * sizeof(*cells->index));
    *cells = (struct ml_cells){.budget = cells->budget};
}

static uint32_t *slot_of(const struct ml_cells *cells, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    const uint32_t mask = cells->index_capacity - 1;
    uint32_t slot = (uint32_t)(hash >> 32) & mask;
    while (cells->index[slot] != 0 && cells->cells[cells->index[slot] - 1].key != key) {
        slot = (slot + 1) & mask;
    }
    return &cells->index[slot];
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
        *slot_of(cells, cells->cells[i].key) = i + 1;
    }
    ml_budget_free(cells->budget, old, old_capacity * sizeof(*old));
    return ML_OK;
}

static enum ml_status grow_cells(struct ml_cells *cells) {
    if (cells->count == ML_LIVE_CELLS_MAX) {
        return ML_PEER_LIMIT;
    }
    const uint32_t capacity = cells->capacity == 0 ? 32 : cells->capacity + cells->capacity / 2;
    struct ml_cell *grown = ml_budget_resize(
        cells->budget, cells->cells, cells->capacity * sizeof(*grown), capacity * sizeof(*grown)
    );
    if (grown == NULL) {
        return ML_ENV_MEMORY;
    }
    cells->cells = grown;
    cells->capacity = capacity;
    return ML_OK;
}

enum ml_status ml_cells_find(struct ml_cells *cells, uint64_t key, uint32_t *out_cell) {
    /* At most half full: the keys are a client's choice of clusters, short probes are ours. */
    if (cells->count >= cells->index_capacity / 2) {
        const enum ml_status status = grow_index(cells);
        if (status != ML_OK) {
            return status;
        }
    }
    uint32_t *slot = slot_of(cells, key);
    if (*slot == 0) {
        if (cells->count == cells->capacity) {
            const enum ml_status status = grow_cells(cells);
            if (status != ML_OK) {
                return status;
            }
        }
        cells->cells[cells->count] = (struct ml_cell){.key = key};
        cells->count++;
        *slot = cells->count;
    }
    *out_cell = *slot - 1;
    return ML_OK;
}
