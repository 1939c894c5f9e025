/* A process's counter cells, one for each (node, heap, type, size class) that was ever allocated
 * at. Room: service. Context: whoever works on the client.
 *
 * One rule: a cell never moves to another index and is never taken away. */
#ifndef MEMLOG_SERVICE_CELLS_H
#define MEMLOG_SERVICE_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/ml_status.h"
#include "service/budget.h"
#include "service/prefetch.h"

struct ml_cell {
    uint64_t key; /* ml_cell_key */
    uint64_t live_bytes, live_blocks;
    uint64_t total_bytes, total_blocks;
    uint64_t temporary_blocks;
    /* Shares at the peaks of process and tree, if the cell has changed since: service/tracker.h. */
    uint64_t peak_bytes, peak_blocks;
    uint64_t tree_bytes, tree_blocks;
    uint64_t mark; /* the tracker's, at the last change */
};

struct ml_cells {
    struct ml_budget *budget;
    struct ml_cell *cells;
    uint32_t count, capacity;
    /* Open addressing over cells: the cell's number + 1 and eight bits of its hash above; 0 empty.
     */
    uint32_t *index;
    uint32_t index_capacity; /* a power of two */
};

static inline uint64_t
ml_cell_key(uint32_t node, unsigned heap, unsigned type, unsigned size_class) {
    return (uint64_t)node | (uint64_t)heap << 24 | (uint64_t)type << 32 |
           (uint64_t)size_class << 48;
}

static inline uint32_t ml_cell_node(uint64_t key) {
    return (uint32_t)key & 0x00ffffffU;
}

/* floor(log2(size)) + 1, 0 for size 0. */
static inline unsigned ml_size_class(uint64_t size_bytes) {
    return size_bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(size_bytes);
}

void ml_cells_init(struct ml_cells *cells, struct ml_budget *budget);
void ml_cells_fini(struct ml_cells *cells);

static inline uint64_t ml_cells_hash(uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    return hash * UINT64_C(0xbf58476d1ce4e5b9);
}

/* Where the index says that cell is; ends at the first empty place. */
static inline uint32_t ml_cells_place(uint64_t hash, uint32_t mask) {
    return (uint32_t)(hash >> 32) & mask;
}

static inline uint32_t ml_cells_tag(uint64_t hash) {
    return (uint32_t)(hash >> 32) & 0xff000000U;
}

/* Bring what ml_cells_find reads first into the cache. As a number, not as a place in the index:
 * there is none before the first cell. */
static inline void ml_cells_prefetch(const struct ml_cells *cells, uint64_t hash) {
    const uintptr_t place = ml_cells_place(hash, cells->index_capacity - 1);
    ml_prefetch((const void *)((uintptr_t)cells->index + place * sizeof(cells->index[0])));
}

/* The number of a cell with that tag: a guess at ml_cells_find's, right for nearly all. UINT32_MAX
 * if there is none. */
static inline uint32_t ml_cells_guess(const struct ml_cells *cells, uint64_t hash) {
    const uint32_t mask = cells->index_capacity - 1;
    if (cells->index_capacity == 0) {
        return UINT32_MAX;
    }
    const uint32_t tag = ml_cells_tag(hash);
    uint32_t place = ml_cells_place(hash, mask);
    while (cells->index[place] != 0 && (cells->index[place] & 0xff000000U) != tag) {
        place = (place + 1) & mask;
    }
    return (cells->index[place] & 0x00ffffffU) - 1;
}

/* Make the cell of that key, or find it. Errors: ML_ENV_MEMORY, ML_PEER_LIMIT. */
ML_NODISCARD enum ml_status
ml_cells_make(struct ml_cells *cells, uint64_t key, uint64_t hash, uint32_t *out_cell);

static inline void ml_cells_prefetch_cell(const struct ml_cells *cells, uint32_t number) {
    if (number < cells->count) {
        /* A cell stands on two cache lines. */
        ml_prefetch(&cells->cells[number]);
        ml_prefetch(&cells->cells[number].mark);
    }
}

/* Whether that is the cell of that key. */
static inline bool ml_cells_is(const struct ml_cells *cells, uint32_t number, uint64_t key) {
    return number < cells->count && cells->cells[number].key == key;
}

#endif
