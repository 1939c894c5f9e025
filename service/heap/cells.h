/* A process's counter cells, one for each (node, heap, type, size class) that was ever allocated
 * at. Room: service. Context: whoever works on the client.
 *
 * One rule: a cell never changes its index and is never removed. */
#ifndef MEMLOG_SERVICE_HEAP_CELLS_H
#define MEMLOG_SERVICE_HEAP_CELLS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"
#include "service/heap/prefetch.h"
#include "service/limits/budget.h"

enum {
    ML_CELLS_BUCKET = 8,               /* entries: half a cache line */
    ML_CELLS_NUMBER_MASK = 0x00ffffff, /* of an entry: a cell's number + 1, ... */
};
#define ML_CELLS_TAG_MASK 0xff000000U /* ... and bits of its hash */

struct ml_cell {
    uint64_t key; /* ml_cell_key */
    uint64_t live_bytes, live_blocks;
    uint64_t total_bytes, total_blocks;
    uint64_t temporary_blocks;
    /* Shares at the peaks of process and tree, if the cell has changed since:
     * service/heap/tracker.h. */
    uint64_t peak_bytes, peak_blocks;
    uint64_t tree_bytes, tree_blocks;
    uint64_t mark; /* the tracker's, at the last change */
};

struct ml_cells {
    struct ml_budget *budget;
    struct ml_cell *cells;
    uint32_t count, capacity;
    /* Where cells are found: the cell's number + 1 and eight bits of its hash above; 0 empty. In
     * buckets, filled from the front; when a bucket is full its entries go to the next one. */
    uint32_t *index;
    uint32_t index_capacity; /* entries, a power of two */
};

enum { ML_CELL_SIZE_CLASS_SHIFT = 48 };

static inline uint64_t
ml_cell_key(uint32_t node, unsigned heap, unsigned type, unsigned size_class) {
    return (uint64_t)node | (uint64_t)heap << 24 | (uint64_t)type << 32 |
           (uint64_t)size_class << ML_CELL_SIZE_CLASS_SHIFT;
}

static inline uint32_t ml_cell_node(uint64_t key) {
    return (uint32_t)key & 0x00ffffffU;
}

/* 0: malloc's. */
static inline unsigned ml_cell_heap(uint64_t key) {
    return (unsigned)(key >> 24) & (ML_HEAPS_MAX - 1);
}

static inline unsigned ml_cell_type(uint64_t key) {
    return (unsigned)(key >> 32) & (ML_TYPES_MAX - 1);
}

/* floor(log2(size)) + 1, 0 for size 0. */
static inline unsigned ml_size_class(uint64_t size_bytes) {
    /* No branch: the next size is unpredictable. Sizes are below 2^63. */
    return 63 - (unsigned)__builtin_clzll(size_bytes << 1 | 1);
}

void ml_cells_init(struct ml_cells *cells, struct ml_budget *budget);
void ml_cells_fini(struct ml_cells *cells);

static inline uint64_t ml_cells_hash(uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    return hash * UINT64_C(0xbf58476d1ce4e5b9);
}

/* The first entry of the bucket where the search for that cell begins. */
static inline uint32_t ml_cells_bucket(uint64_t hash, uint32_t index_capacity) {
    return (uint32_t)(hash >> 32) & (index_capacity - 1) & ~(uint32_t)(ML_CELLS_BUCKET - 1);
}

static inline uint32_t ml_cells_tag(uint64_t hash) {
    return (uint32_t)(hash >> 32) & ML_CELLS_TAG_MASK;
}

/* The entries of a bucket with that tag, a bit each. Empty ones may be among them, behind all that
 * are none. */
static inline unsigned ml_cells_match(const uint32_t *bucket, uint32_t tag) {
#ifdef __SSE2__
    typedef int four __attribute__((vector_size(16)));
    typedef float four_float __attribute__((vector_size(16)));
    const int one = (int)tag;
    const int mask = (int)ML_CELLS_TAG_MASK;
    four low;
    four high;
    memcpy(&low, bucket, sizeof(low));
    memcpy(&high, bucket + 4, sizeof(high));
    const four same_low = (low & (four){mask, mask, mask, mask}) == (four){one, one, one, one};
    const four same_high = (high & (four){mask, mask, mask, mask}) == (four){one, one, one, one};
    return (unsigned)__builtin_ia32_movmskps((four_float)same_low) |
           (unsigned)__builtin_ia32_movmskps((four_float)same_high) << 4;
#else
    unsigned found = 0;
    for (unsigned i = 0; i < ML_CELLS_BUCKET; i++) {
        found |= (unsigned)((bucket[i] & ML_CELLS_TAG_MASK) == tag) << i;
    }
    return found;
#endif
}

/* Prefetch what ml_cells_guess reads first. The address is computed as a number: before the first
 * cell there is no index. */
static inline void ml_cells_prefetch(const struct ml_cells *cells, uint64_t hash) {
    const uintptr_t entry = ml_cells_bucket(hash, cells->index_capacity);
    ml_prefetch((const void *)((uintptr_t)cells->index + entry * sizeof(cells->index[0])));
}

/* The number of a cell with that tag in the first bucket: nearly always the right one, without a
 * branch. An arbitrary number if there is none. Requires that there is a cell. */
static inline uint32_t ml_cells_guess(const struct ml_cells *cells, uint64_t hash) {
    const uint32_t *bucket = cells->index + ml_cells_bucket(hash, cells->index_capacity);
    const unsigned found = ml_cells_match(bucket, ml_cells_tag(hash));
    const unsigned first = (unsigned)__builtin_ctz(found | 1U << (ML_CELLS_BUCKET - 1));
    return (bucket[first] & ML_CELLS_NUMBER_MASK) - 1;
}

/* Make the cell of that key, or find it. Errors: ML_ENV_MEMORY, ML_PEER_LIMIT. */
ML_NODISCARD enum ml_status
ml_cells_make(struct ml_cells *cells, uint64_t key, uint64_t hash, uint32_t *out_cell);

/* Whether that cell has that key. */
static inline bool ml_cells_is(const struct ml_cells *cells, uint32_t number, uint64_t key) {
    return number < cells->count && cells->cells[number].key == key;
}

#endif
