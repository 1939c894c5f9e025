/* Memory for the analyzer's tables: an arena, and arrays that grow. Room: tools. Context: one
 * thread.
 *
 * One rule: an arena's pieces live until the arena goes; nothing in it is freed alone. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_MEMORY_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct ml_arena_block;

struct ml_arena {
    struct ml_arena_block *blocks;
};

/* An empty arena is all zero. */
void ml_arena_fini(struct ml_arena *arena);

/* Zeroed memory, aligned for anything. NULL when there is none. */
void *ml_arena_take(struct ml_arena *arena, size_t count_bytes);

/* A copy with a NUL behind it. NULL when there is no memory. */
char *ml_arena_text(struct ml_arena *arena, const char *bytes, size_t count_bytes);

/* Make room for `needed` items in *items. False when there is no memory (nothing changed). */
bool ml_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes);

/* The same for an array of any type, by its pointer and its capacity themselves. */
#define ML_GROW(items, capacity, needed)                                                           \
    ml_grow((void **)&(items), &(capacity), (needed), sizeof *(items))

/* Sort an array. One of nothing may be NULL, which qsort() must not be given. */
#define ML_SORT(items, count, order)                                                               \
    ((count) > 1 ? qsort((items), (count), sizeof *(items), (order)) : (void)0)

/* A hash of bytes, continued from `hash` (0 at the start). FNV-1a, 64 bits, mixed at the end by
 * ml_hash_index. */
uint64_t ml_hash(uint64_t hash, const void *bytes, size_t count_bytes);

/* The slot of a hash in a table of 2^n slots. */
size_t ml_hash_index(uint64_t hash, size_t slots_count);

#endif
