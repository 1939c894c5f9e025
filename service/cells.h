/* A process's counter cells, one for each (node, heap, type, size class) that was ever allocated
 * at. Room: service. Context: the session's one thread.
 *
 * One rule: a cell never moves to another index and is never taken away. */
#ifndef MEMLOG_SERVICE_CELLS_H
#define MEMLOG_SERVICE_CELLS_H

#include <stdint.h>

#include "ipc/ml_status.h"
#include "service/budget.h"

struct ml_cell {
    uint64_t key; /* ml_cell_key */
    uint64_t live_bytes, live_blocks;
    uint64_t total_bytes, total_blocks;
    uint64_t temporary_blocks;
    uint64_t peak_bytes, peak_blocks; /* share at the process's peak, if peak_epoch is its epoch */
    uint64_t peak_epoch;
    uint64_t tree_bytes, tree_blocks; /* share at the tree's peak, if tree_epoch is its epoch */
    uint64_t tree_epoch;
};

struct ml_cells {
    struct ml_budget *budget;
    struct ml_cell *cells;
    uint32_t count, capacity;
    uint32_t *index; /* open addressing over cells: index + 1, 0 empty */
    uint32_t index_capacity;
};

static inline uint64_t
ml_cell_key(uint32_t node, unsigned heap, unsigned type, unsigned size_class) {
    return (uint64_t)node | (uint64_t)heap << 24 | (uint64_t)type << 32 |
           (uint64_t)size_class << 48;
}

/* floor(log2(size)) + 1, 0 for size 0. */
static inline unsigned ml_size_class(uint64_t size_bytes) {
    return size_bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(size_bytes);
}

void ml_cells_init(struct ml_cells *cells, struct ml_budget *budget);
void ml_cells_fini(struct ml_cells *cells);

/* The cell of that key, made when it is new. Errors: ML_ENV_MEMORY, ML_PEER_LIMIT. */
ML_NODISCARD enum ml_status ml_cells_find(struct ml_cells *cells, uint64_t key, uint32_t *out_cell);

#endif
