/* A library whose allocations are its user's: whoever loads it hands an allocator in. */
#include <stdlib.h>

static void *volatile kept_on_shelf;

__attribute__((noinline)) static void quietly(size_t size, void *(*allocate)(size_t)) {
    kept_on_shelf = allocate(size);
    __asm__ volatile("" ::: "memory");
}

void shelf_keep(size_t size, void *(*allocate)(size_t));
void shelf_keep(size_t size, void *(*allocate)(size_t)) {
    quietly(size, allocate);
    __asm__ volatile("" ::: "memory");
}
