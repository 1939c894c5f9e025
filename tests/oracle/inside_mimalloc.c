/* mimalloc, as a library: by its prefix, and functions with as many arguments as hooks pass on. */
#include "tests/oracle/inside.h"

struct mi_heap;

void *mi_malloc(size_t size);
void mi_free(void *block);
void *mi_calloc(size_t count, size_t size);
void *mi_realloc(void *block, size_t size);
int mi_posix_memalign(void **out_block, size_t alignment, size_t size);
void *mi_memalign(size_t alignment, size_t size);
/* mimalloc 3.3 has the latter alone. */
struct mi_heap *mi_heap_get_default(void) __attribute__((weak));
struct mi_heap *mi_heap_main(void) __attribute__((weak));
void *mi_heap_calloc_aligned_at(
    struct mi_heap *heap, size_t count, size_t size, size_t alignment, size_t offset
);
void *mi_heap_realloc_aligned_at(
    struct mi_heap *heap, void *block, size_t size, size_t alignment, size_t offset
);
void *mi_heap_rezalloc_aligned_at(
    struct mi_heap *heap, void *block, size_t size, size_t alignment, size_t offset
);
void *mi_heap_recalloc_aligned(
    struct mi_heap *heap, void *block, size_t count, size_t size, size_t alignment
);
void *
mi_recalloc_aligned_at(void *block, size_t count, size_t size, size_t alignment, size_t offset);
void *
mi_aligned_offset_recalloc(void *block, size_t count, size_t size, size_t alignment, size_t offset);

enum { ALIGNMENT = 256, OFFSET = 24 };

LEDGER_PATH void special(void);

static struct ledger_site at_special = {.chain = "special<main"};

/* `block` at the offset is aligned: the fifth argument has come there. */
static void *placed(void *old, void *block, size_t size, size_t offset) {
    if (((uintptr_t)block + offset) % ALIGNMENT != 0) {
        ledger_die("not aligned at its offset");
    }
    return old == NULL ? ledger_alloc(&at_special, block, size)
                       : ledger_resize(&at_special, old, block, size);
}

void special(void) {
    struct mi_heap *heap = mi_heap_get_default != NULL ? mi_heap_get_default() : mi_heap_main();
    void *block = mi_heap_calloc_aligned_at(heap, 30, 7, ALIGNMENT, OFFSET);
    block = placed(NULL, block, 30 * 7, OFFSET);
    void *old = block;
    block =
        placed(old, mi_heap_realloc_aligned_at(heap, old, 3000, ALIGNMENT, OFFSET), 3000, OFFSET);
    old = block;
    block =
        placed(old, mi_heap_rezalloc_aligned_at(heap, old, 9000, ALIGNMENT, OFFSET), 9000, OFFSET);
    old = block;
    block = placed(old, mi_recalloc_aligned_at(old, 1000, 20, ALIGNMENT, OFFSET), 20000, OFFSET);
    old = block;
    block =
        placed(old, mi_aligned_offset_recalloc(old, 1000, 50, ALIGNMENT, OFFSET), 50000, OFFSET);
    ledger_free(block);
    mi_free(block);
    block = placed(NULL, mi_heap_calloc_aligned_at(heap, 5, 100, ALIGNMENT, 0), 500, 0);
    (void)placed(block, mi_heap_recalloc_aligned(heap, block, 400, 11, ALIGNMENT), 4400, 0);
}

const struct inside inside = {
    .allocate = mi_malloc,
    .release = mi_free,
    .allocate_zeroed = mi_calloc,
    .resize = mi_realloc,
    .allocate_aligned = mi_posix_memalign,
    .allocate_at = mi_memalign,
    .special = special,
};
