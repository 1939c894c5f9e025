/* Blocks for code that allocates before our constructor has found the next allocator. Room: client
 * (private). Context: any thread, the start of a process.
 *
 * One rule: its memory is never given back and never used twice, so whoever frees or moves a block
 * of it only has to see that it is one. */
#ifndef MEMLOG_CLIENT_STATE_BOOT_STORE_H
#define MEMLOG_CLIENT_STATE_BOOT_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/state/visible.h"

enum { ML_BOOT_STORE_BYTES = 64 * 1024 }; /* a few hundred have been seen to be used */

extern ML_OURS uint8_t ml_boot_store[ML_BOOT_STORE_BYTES];
extern ML_OURS _Atomic size_t ml_boot_store_used; /* of its bytes; 0 in most programs */

/* Zeros; NULL: no room. */
void *ml_boot_store_take(size_t alignment, size_t size);

/* Whether it has blocks that may be freed. */
static inline bool ml_boot_store_is_used(void) {
    return __builtin_expect(
        atomic_load_explicit(&ml_boot_store_used, memory_order_relaxed) != 0, 0
    );
}

static inline bool ml_boot_store_owns(const void *block) {
    return ml_boot_store_is_used() &&
           (uintptr_t)block - (uintptr_t)ml_boot_store < ML_BOOT_STORE_BYTES;
}

/* Bytes usable at a block of it: up to the store's end, for a realloc's copy. */
size_t ml_boot_store_room(const void *block);

#endif
