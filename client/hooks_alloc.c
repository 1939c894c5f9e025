/* The allocator as the program sees it. Room: client. Context: everywhere, at any time.
 *
 * One rule: the caller gets what the next allocator answers, errno included; we only look on. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/next.h"
#include "client/record.h"
#include "client/visible.h"

/* C23's; this libc's headers may not have them yet. */
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);

/* Every hook keeps a frame of its own (ml_unwind_entry_here) and is never inlined into another. */
#define HOOK ML_VISIBLE __attribute__((noinline))

static inline uintptr_t frame_of(const struct ml_unwind_entry *entry) {
    return entry->sp;
}

/* Forward, then record; the body of every hook that returns a new block. */
#define ALLOCATE(call, bytes)                                                                      \
    const struct ml_unwind_entry entry = ml_unwind_entry_here();                                   \
    struct ml_thread *thread = &ml_thread;                                                         \
    const struct ml_hook hook = ml_hook_enter(thread, frame_of(&entry));                           \
    void *block = (call);                                                                          \
    if (ml_likely(hook.lane != NULL && block != NULL)) {                                           \
        (void)ml_hook_recording(thread);                                                           \
        ml_record_alloc(hook.lane, &entry, block, (bytes));                                        \
    }                                                                                              \
    ml_hook_leave(thread, &hook);                                                                  \
    return block

HOOK void *malloc(size_t size) {
    if (ml_unlikely(ml_next.malloc == NULL)) {
        return ml_next_boot_alloc(1, size);
    }
    ALLOCATE(ml_next.malloc(size), size);
}

HOOK void *calloc(size_t count, size_t size) {
    if (ml_unlikely(ml_next.malloc == NULL)) {
        size_t bytes = 0;
        /* The boot store is static memory: zero, and never used twice. */
        return __builtin_mul_overflow(count, size, &bytes) ? NULL : ml_next_boot_alloc(1, bytes);
    }
    ALLOCATE(ml_next.calloc(count, size), count * size);
}

HOOK void *aligned_alloc(size_t alignment, size_t size) {
    if (ml_unlikely(ml_next.malloc == NULL)) {
        return ml_next_boot_alloc(alignment, size);
    }
    ALLOCATE(ml_next.aligned_alloc(alignment, size), size);
}

HOOK void *memalign(size_t alignment, size_t size) {
    if (ml_unlikely(ml_next.malloc == NULL)) {
        return ml_next_boot_alloc(alignment, size);
    }
    ALLOCATE(ml_next.memalign(alignment, size), size);
}

HOOK void *valloc(size_t size) {
    ALLOCATE(ml_next.valloc(size), size);
}

HOOK void *pvalloc(size_t size) {
    ALLOCATE(ml_next.pvalloc(size), size);
}

HOOK int posix_memalign(void **out_block, size_t alignment, size_t size) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    struct ml_thread *thread = &ml_thread;
    const struct ml_hook hook = ml_hook_enter(thread, frame_of(&entry));
    const int result = ml_next.posix_memalign(out_block, alignment, size);
    if (hook.lane != NULL && result == 0 && *out_block != NULL) {
        (void)ml_hook_recording(thread);
        ml_record_alloc(hook.lane, &entry, *out_block, size);
    }
    ml_hook_leave(thread, &hook);
    return result;
}

static inline void before_free(
    struct ml_thread *thread, const struct ml_hook *hook, const void *block, enum ml_op op
) {
    if (ml_likely(hook->lane != NULL)) {
        const uint32_t phase = ml_hook_recording(thread);
        ml_record_free(hook->lane, block, op);
        ml_hook_calling(thread, phase);
    }
}

/* The body of every hook that gives a block back. */
#define RELEASE(block, call)                                                                       \
    if ((block) == NULL || ml_unlikely(ml_next_boot_owns(block))) {                                \
        return;                                                                                    \
    }                                                                                              \
    struct ml_thread *thread = &ml_thread;                                                         \
    const struct ml_hook hook =                                                                    \
        ml_hook_enter(thread, (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *));         \
    before_free(thread, &hook, (block), ML_OP_FREE);                                               \
    call;                                                                                          \
    ml_hook_leave(thread, &hook)

HOOK void free(void *block) {
    RELEASE(block, ml_next.free(block));
}

/* C23. Where the libc is older there is nothing to forward to, and free means the same. */
HOOK void free_sized(void *block, size_t size) {
    if (ml_next.free_sized == NULL) {
        RELEASE(block, ml_next.free(block));
        return;
    }
    RELEASE(block, ml_next.free_sized(block, size));
}

HOOK void free_aligned_sized(void *block, size_t alignment, size_t size) {
    if (ml_next.free_aligned_sized == NULL) {
        RELEASE(block, ml_next.free(block));
        return;
    }
    RELEASE(block, ml_next.free_aligned_sized(block, alignment, size));
}

/* A block of the boot store moves to the real allocator; what lay behind it is copied along,
 * harmlessly. */
static void *leave_boot_store(const void *block, size_t size) {
    void *moved = ml_next.malloc != NULL ? ml_next.malloc(size) : ml_next_boot_alloc(1, size);
    if (moved != NULL) {
        const size_t room = ml_next_boot_room(block);
        memcpy(moved, block, size < room ? size : room);
    }
    return moved;
}

/* The second half of a realloc. NULL for a size of 0 was a free, and there is nothing more to say.
 */
static inline void after_realloc(
    struct ml_thread *thread,
    const struct ml_hook *hook,
    const struct ml_unwind_entry *entry,
    const void *old_block,
    const void *new_block,
    size_t size
) {
    if (hook->lane == NULL) {
        return;
    }
    (void)ml_hook_recording(thread);
    if (new_block != NULL) {
        ml_record_alloc(hook->lane, entry, new_block, size);
    } else if (old_block != NULL && size != 0) {
        ml_record_cancel(hook->lane);
    }
}

#define REALLOCATE(old_block, call, bytes)                                                         \
    const struct ml_unwind_entry entry = ml_unwind_entry_here();                                   \
    struct ml_thread *thread = &ml_thread;                                                         \
    const struct ml_hook hook = ml_hook_enter(thread, frame_of(&entry));                           \
    if ((old_block) != NULL) {                                                                     \
        before_free(thread, &hook, (old_block), ML_OP_RESIZE);                                     \
    }                                                                                              \
    void *new_block = (call);                                                                      \
    after_realloc(thread, &hook, &entry, (old_block), new_block, (bytes));                         \
    ml_hook_leave(thread, &hook);                                                                  \
    return new_block

HOOK void *realloc(void *block, size_t size) {
    if (ml_unlikely(ml_next_boot_owns(block) || ml_next.malloc == NULL)) {
        return block == NULL ? malloc(size) : leave_boot_store(block, size);
    }
    REALLOCATE(block, ml_next.realloc(block, size), size);
}

HOOK void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes = 0;
    if (ml_unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        /* Fails in the next allocator too, which sets errno; the block is not touched, so nothing
         * is recorded. */
        return ml_next.reallocarray(block, count, size);
    }
    if (ml_unlikely(ml_next_boot_owns(block))) {
        return leave_boot_store(block, bytes);
    }
    REALLOCATE(block, ml_next.reallocarray(block, count, size), bytes);
}
