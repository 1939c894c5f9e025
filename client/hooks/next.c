#include "client/hooks/next.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "client/state/boot_store.h"
#include "client/symbols/symbols.h"

/* The store has no room left: other constructors run before ours (before 2.34 glibc's libpthread
 * comes first of all). Whatever allocates is relocated by then. True: the functions are found, and
 * are not ours. */
static bool end_of_boot(void) {
    ml_next_resolve();
    return ml_next.malloc != NULL;
}

static void *boot_malloc(size_t size);

/* Whether to leave the store, behind a try to take `block` from it: it has no room, or another
 * thread has found the functions meanwhile. Who records from then on looks once whether the store
 * has blocks, behind that: so it sees this one, or this one is not used. */
static bool is_over(const void *block) {
    if (block == NULL) {
        return end_of_boot();
    }
    void *(*now)(size_t) = __atomic_load_n(&ml_next.malloc, __ATOMIC_SEQ_CST);
    return now != boot_malloc && now != NULL;
}

static void *boot_memalign(size_t alignment, size_t size) {
    void *block = ml_boot_store_take(alignment, size);
    return is_over(block) && ml_next.memalign != NULL && ml_next.memalign != boot_memalign
               ? ml_next.memalign(alignment, size)
               : block;
}

static void *boot_malloc(size_t size) {
    void *block = ml_boot_store_take(1, size);
    return is_over(block) ? ml_next.malloc(size) : block;
}

/* The store is static memory: zero, and never used twice. */
static void *boot_calloc(size_t count, size_t size) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    void *block = ml_boot_store_take(1, bytes);
    return is_over(block) ? ml_next.calloc(count, size) : block;
}

/* Only blocks of the store exist yet. Bytes behind the block are copied too, harmlessly. */
static void *boot_realloc(void *block, size_t size) {
    void *moved = boot_malloc(size);
    if (moved != NULL && block != NULL) {
        const size_t room = ml_boot_store_room(block);
        memmove(moved, block, size < room ? size : room);
    }
    return moved;
}

struct ml_next ml_next = {
    .malloc = boot_malloc,
    .calloc = boot_calloc,
    .realloc = boot_realloc,
    .aligned_alloc = boot_memalign,
    .memalign = boot_memalign,
};

void ml_next_resolve(void) {
    /* These four at once, and malloc last: a resolver of an indirect function may allocate. */
    struct ml_next found = {0};
    ml_symbol_next_function(&found.malloc, "malloc");
    ml_symbol_next_function(&found.free, "free");
    ml_symbol_next_function(&found.calloc, "calloc");
    ml_symbol_next_function(&found.realloc, "realloc");
    ml_next.calloc = found.calloc;
    ml_next.realloc = found.realloc;
    ml_next.free = found.free;
    __atomic_store_n(&ml_next.malloc, found.malloc, __ATOMIC_SEQ_CST);
    ml_symbol_next_function(&ml_next.posix_memalign, "posix_memalign");
    ml_symbol_next_function(&ml_next.aligned_alloc, "aligned_alloc");
    ml_symbol_next_function(&ml_next.memalign, "memalign");
    ml_symbol_next_function(&ml_next.valloc, "valloc");
    ml_symbol_next_function(&ml_next.pvalloc, "pvalloc");
    ml_symbol_next_function(&ml_next.reallocarray, "reallocarray");
    ml_symbol_next_function(&ml_next.free_sized, "free_sized");
    ml_symbol_next_function(&ml_next.free_aligned_sized, "free_aligned_sized");
}

void ml_next_follow(void *(*now)(void *function)) {
    uint8_t *const all = (uint8_t *)&ml_next;
    for (size_t at = 0; at < sizeof(ml_next); at += sizeof(void *)) {
        void *function = NULL;
        memcpy(&function, all + at, sizeof(function));
        function = now(function);
        memcpy(all + at, &function, sizeof(function));
    }
}
