/* Blocks of heaps that the program reports itself (client/memlog.h). Room: client (private).
 * Context: any thread, a signal handler too; inside a hooked allocator too, whose own call is
 * another event.
 *
 * One rule: a heap is sampled by its own interval. Each block is drawn for itself: whether it is
 * recorded depends on its size, the interval and chance alone, as for malloc's. */
#ifndef MEMLOG_CLIENT_RECORDING_HEAPS_H
#define MEMLOG_CLIENT_RECORDING_HEAPS_H

#include <stdint.h>

#include "client/recording/names.h"
#include "client/unwind/unwind.h"

/* What the program calls a block. */
struct ml_heap_block {
    struct ml_name *heap;
    uint64_t id; /* any */
    uint64_t size_bytes;
    struct ml_name *type; /* NULL: none */
};

/* The block is new; its stack starts at `entry`. */
void ml_heap_alloc(const struct ml_unwind_entry *entry, const struct ml_heap_block *block);

/* It is about to be given back. */
void ml_heap_free(const struct ml_unwind_entry *entry, struct ml_name *heap, uint64_t id);

#endif
