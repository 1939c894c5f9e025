#include "client/state/boot_store.h"

uint8_t ml_boot_store[ML_BOOT_STORE_BYTES] __attribute__((aligned(64)));
_Atomic size_t ml_boot_store_used;

void *ml_boot_store_take(size_t alignment, size_t size) {
    if (size > sizeof(ml_boot_store) || alignment > sizeof(ml_boot_store)) {
        return NULL;
    }
    const size_t mask = alignment < 16 ? 15 : alignment - 1;
    size_t used = atomic_load(&ml_boot_store_used);
    for (;;) {
        const size_t at =
            (((uintptr_t)ml_boot_store + used + mask) & ~mask) - (uintptr_t)ml_boot_store;
        if (at + size > sizeof(ml_boot_store)) {
            return NULL;
        }
        if (atomic_compare_exchange_weak(&ml_boot_store_used, &used, at + size)) {
            return ml_boot_store + at;
        }
    }
}

size_t ml_boot_store_room(const void *block) {
    return (size_t)((uintptr_t)ml_boot_store + sizeof(ml_boot_store) - (uintptr_t)block);
}
