/* An allocator whose free cannot be moved: among its first bytes is an instruction that has a short
 * form alone. */
#include "tests/oracle/inside.h"

INSIDE_FUNCTION void *pool_malloc(size_t size);
INSIDE_FUNCTION void pool_free(void *block);

void *pool_malloc(size_t size) {
    return inside_place(0, size);
}

__asm__(".text\n"
        ".globl pool_free\n"
        ".type pool_free, @function\npool_free:\n"
        "push %rcx\n"
        "xor %ecx, %ecx\n"
        "jrcxz 1f\n"
        "1: pop %rcx\n"
        "jmp inside_put_back\n"
        ".size pool_free, . - pool_free\n");

static void *zeroed(size_t count, size_t size) {
    size_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes)
               ? NULL
               : inside_clear(inside_place(0, bytes), count, size);
}

static void *resized(void *block, size_t size) {
    const size_t room = block != NULL ? inside_room(block) : 0;
    void *moved = size > room ? inside_place(0, size) : block;
    if (moved != NULL && moved != block && block != NULL) {
        memcpy(moved, block, room);
        inside_put_back(block);
    }
    return moved;
}

static int aligned(void **out_block, size_t alignment, size_t size) {
    *out_block = inside_place(alignment, size);
    return *out_block != NULL ? 0 : ENOMEM;
}

const struct inside inside = {
    .allocate = pool_malloc,
    .release = pool_free,
    .allocate_zeroed = zeroed,
    .resize = resized,
    .allocate_aligned = aligned,
    .allocate_at = inside_place,
};
