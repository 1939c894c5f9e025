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

REPORT void memlog_alloc(uint32_t heap, uint64_t id, uint64_t bytes) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    const struct ml_heap_block block = {
        .heap = is_idle() ? NULL : ml_name_of(ML_NAMES_HEAPS, heap), .id = id, .size_bytes = bytes};
    if (block.heap != NULL) {
        ml_heap_alloc(&entry, &block);
    }
}

REPORT void memlog_alloc_typed(uint32_t heap, uint64_t id, uint64_t bytes, uint32_t type) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    const struct ml_heap_block block = {
        .heap = is_idle() ? NULL : ml_name_of(ML_NAMES_HEAPS, heap),
        .id = id,
        .size_bytes = bytes,
        .type = ml_name_of(ML_NAMES_TYPES, type)};
    if (block.heap != NULL) {
        ml_heap_alloc(&entry, &block);
    }
}

REPORT void memlog_free(uint32_t heap, uint64_t id) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    struct ml_name *name = is_idle() ? NULL : ml_name_of(ML_NAMES_HEAPS, heap);
    if (name != NULL) {
        ml_heap_free(&entry, name, id);
    }
}
