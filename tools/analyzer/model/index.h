/* Finds numbered things by their hash. Room: tools. Context: one thread.
 *
 * One rule: the index holds only hashes and numbers; the caller compares the things. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_INDEX_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No such thing. */
#define ML_INDEX_NONE UINT32_MAX

struct ml_index_slot {
    uint64_t hash;
    uint32_t item; /* number + 1; 0: free */
};

/* An empty index is all zero. */
struct ml_index {
    struct ml_index_slot *slots;
    size_t slots_count; /* a power of two, or 0 */
    size_t count;
};

void ml_index_fini(struct ml_index *index);

/* The first, then the next thing with that hash: ML_INDEX_NONE behind the last.
 *
 *   for (item = ml_index_first(i, h, &at); item != ML_INDEX_NONE; item = ml_index_next(i, h, &at))
 */
uint32_t ml_index_first(const struct ml_index *index, uint64_t hash, size_t *out_at);
uint32_t ml_index_next(const struct ml_index *index, uint64_t hash, size_t *at);

/* Add a thing. False: no memory. */
bool ml_index_add(struct ml_index *index, uint64_t hash, uint32_t item);

#endif
