/* The heaps that a program reports itself: memlog.h's functions. Room: client. Context: any thread,
 * at any time, a signal handler too.
 *
 * One rule: where nothing is recorded a call is a few instructions. errno is kept: nothing here
 * calls libc. */
#include <stdbool.h>
#include <stddef.h>

#include "client/memlog.h"
#include "client/recording/heaps.h"
#include "client/recording/hook.h"
#include "client/state/visible.h"

/* Each keeps a frame of its own (ml_unwind_entry_here). */
#define REPORT ML_VISIBLE __attribute__((noinline))

ML_VISIBLE uint32_t memlog_heap(const char *name, uint64_t sampling_interval_bytes) {
    return ml_name_id(ML_NAMES_HEAPS, name, sampling_interval_bytes);
}

ML_VISIBLE uint32_t memlog_type(const char *name) {
    return ml_name_id(ML_NAMES_TYPES, name, 0);
}

static bool is_idle(void) {
    return !ml_process.connected || ml_hook_is_idle(ml_this_thread());
}

static void alloc_slowly(
    const struct ml_unwind_entry *entry,
    uint32_t heap,
    uint64_t id,
    uint64_t bytes,
    struct ml_name *type
) {
    const struct ml_heap_block block = {
        .heap = ml_name_heap(heap), .id = id, .size_bytes = bytes, .type = type};
    if (block.heap != NULL && !is_idle()) {
        ml_heap_alloc(entry, &block);
    }
}

static void free_slowly(const struct ml_unwind_entry *entry, uint32_t heap, uint64_t id) {
    struct ml_name *name = ml_name_heap(heap);
    if (name != NULL && !is_idle()) {
        ml_heap_free(entry, name, id);
    }
}

/* The fast path keeps its entry in registers; the slow one has its own, in memory. */
REPORT void memlog_alloc(uint32_t heap, uint64_t id, uint64_t bytes) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    if (ml_unlikely(!ml_heap_alloc_here(&entry, heap, id, bytes, NULL))) {
        const struct ml_unwind_entry slow_entry = ml_unwind_entry_here();
        alloc_slowly(&slow_entry, heap, id, bytes, NULL);
    }
}

REPORT void memlog_alloc_typed(uint32_t heap, uint64_t id, uint64_t bytes, uint32_t type) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    struct ml_name *name = type != 0 && !is_idle() ? ml_name_type(type) : NULL;
    if (ml_unlikely(!ml_heap_alloc_here(&entry, heap, id, bytes, name))) {
        const struct ml_unwind_entry slow_entry = ml_unwind_entry_here();
        alloc_slowly(&slow_entry, heap, id, bytes, name);
    }
}

REPORT void memlog_free(uint32_t heap, uint64_t id) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    if (ml_unlikely(!ml_heap_free_here(&entry, heap, id))) {
        const struct ml_unwind_entry slow_entry = ml_unwind_entry_here();
        free_slowly(&slow_entry, heap, id);
    }
}
