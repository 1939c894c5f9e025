/* The allocator as the program sees it. Room: client. Context: everywhere, at any time.
 *
 * One rule: the caller gets the next allocator's answer, errno included; hooks only observe. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/hooks/next.h"
#include "client/recording/hook_record.h"
#include "client/recording/sampler.h"
#include "client/state/boot_store.h"
#include "client/state/visible.h"

/* C23's; this libc's headers may not have them yet. */
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);

/* Every hook keeps a frame of its own (ml_unwind_entry_here) and is never inlined into another. The
 * four most frequent ones jump to a separate function that records, so that a call which sampling
 * skips saves no registers. */
#define HOOK ML_VISIBLE ML_HOT ML_HOOK
#define RECORDED static ML_HOT ML_HOOK

static inline uintptr_t frame_of(const struct ml_unwind_entry *entry) {
    return entry->sp;
}

/* Keeps the compiler from merging two equal exits, which would cost a jump. */
#define APART __asm__ volatile("")

/* A call that is not recorded is forwarded by a jump, without a guard: no allocator's malloc,
 * calloc, realloc or free calls another of its functions by name. The rarer ones do (glibc's
 * reallocarray), so they keep the guard, which recognizes a nested call. */
#define PASS(bytes, call)                                                                          \
    if (ml_sampler_passes(ml_this_thread(), (bytes))) {                                            \
        return (call);                                                                             \
    }                                                                                              \
    if (ml_hook_is_idle(ml_this_thread())) {                                                       \
        APART;                                                                                     \
        return (call);                                                                             \
    }

#define PASS_GUARDED(bytes, call)                                                                  \
    if (ml_sampler_passes(ml_this_thread(), (bytes))) {                                            \
        const struct ml_unwind_entry here = ml_unwind_entry_here();                                \
        ml_sampler_pass(ml_this_thread(), frame_of(&here));                                        \
        __typeof__(call) passed = (call);                                                          \
        ml_sampler_passed(ml_this_thread());                                                       \
        return passed;                                                                             \
    }

/* Forward, then record; the body of every hook that returns a new block. The fast path keeps its
 * state in registers; the slow one needs more, and an `entry` of its own in memory. */
#define ALLOCATE(call, bytes, record)                                                              \
    struct ml_thread *thread = ml_this_thread();                                                   \
    const struct ml_unwind_entry entry = ml_unwind_entry_here();                                   \
    if (ml_likely(ml_hook_enter_plain(thread, frame_of(&entry)))) {                                \
        struct ml_lane *lane = thread->lane;                                                       \
        void *block = (call);                                                                      \
        if (ml_likely(lane != NULL && block != NULL)) {                                            \
            ml_hook_recorded(thread);                                                              \
            record(lane, &entry, block, (bytes));                                                  \
            ml_hook_late(thread, block);                                                           \
        }                                                                                          \
        ml_hook_leave_plain(thread);                                                               \
        return block;                                                                              \
    }                                                                                              \
    const struct ml_unwind_entry slow_entry = ml_unwind_entry_here();                              \
    const struct ml_hook hook = ml_hook_enter_slow(thread, frame_of(&slow_entry));                 \
    void *block = (call);                                                                          \
    if (hook.lane != NULL && block != NULL) {                                                      \
        ml_hook_alloc(thread, &hook, &slow_entry, block, (bytes));                                 \
    }                                                                                              \
    ml_hook_leave_slow(thread, &hook);                                                             \
    return block

RECORDED void *recorded_malloc(size_t size) {
    ALLOCATE(ml_next.malloc(size), size, ml_record_alloc_here);
}

HOOK void *malloc(size_t size) {
    PASS(size, ml_next.malloc(size))
    return recorded_malloc(size);
}

RECORDED void *recorded_calloc(size_t count, size_t size) {
    ALLOCATE(ml_next.calloc(count, size), count * size, ml_record_alloc);
}

HOOK void *calloc(size_t count, size_t size) {
    size_t bytes = 0;
    if (ml_likely(!__builtin_mul_overflow(count, size, &bytes))) {
        PASS(bytes, ml_next.calloc(count, size))
    }
    return recorded_calloc(count, size);
}

HOOK void *aligned_alloc(size_t alignment, size_t size) {
    PASS_GUARDED(size, ml_next.aligned_alloc(alignment, size))
    ALLOCATE(ml_next.aligned_alloc(alignment, size), size, ml_record_alloc);
}

HOOK void *memalign(size_t alignment, size_t size) {
    PASS_GUARDED(size, ml_next.memalign(alignment, size))
    ALLOCATE(ml_next.memalign(alignment, size), size, ml_record_alloc);
}

HOOK void *valloc(size_t size) {
    PASS_GUARDED(size, ml_next.valloc(size))
    ALLOCATE(ml_next.valloc(size), size, ml_record_alloc);
}

HOOK void *pvalloc(size_t size) {
    PASS_GUARDED(size, ml_next.pvalloc(size))
    ALLOCATE(ml_next.pvalloc(size), size, ml_record_alloc);
}

HOOK int posix_memalign(void **out_block, size_t alignment, size_t size) {
    PASS_GUARDED(size, ml_next.posix_memalign(out_block, alignment, size))
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    struct ml_thread *thread = ml_this_thread();
    const struct ml_hook hook = ml_hook_enter(thread, frame_of(&entry));
    const int result = ml_next.posix_memalign(out_block, alignment, size);
    if (hook.lane != NULL && result == 0 && *out_block != NULL) {
        ml_hook_alloc(thread, &hook, &entry, *out_block, size);
    }
    ml_hook_leave(thread, &hook);
    return result;
}

/* The body of every hook that frees a block, other than one of the boot store's. */
#define RELEASE(block, call, record)                                                               \
    struct ml_thread *thread = ml_this_thread();                                                   \
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *);            \
    if (ml_likely(ml_hook_enter_plain(thread, frame))) {                                           \
        struct ml_lane *lane = thread->lane;                                                       \
        if (ml_likely(lane != NULL)) {                                                             \
            ml_hook_recorded(thread);                                                              \
            record(lane, (block), ML_OP_FREE);                                                     \
            ml_hook_calling(thread, ML_PHASE_NEXT);                                                \
        }                                                                                          \
        call;                                                                                      \
        ml_hook_leave_plain(thread);                                                               \
        return;                                                                                    \
    }                                                                                              \
    const struct ml_hook hook = ml_hook_enter_slow(thread, frame);                                 \
    (void)ml_hook_free(thread, &hook, (block), ML_OP_FREE);                                        \
    call;                                                                                          \
    ml_hook_leave_slow(thread, &hook)

RECORDED void recorded_free(void *block) {
    RELEASE(block, ml_next.free(block), ml_record_free_here);
}

/* The slow check of a free that the fast one could not skip. */
RECORDED void looked_free(void *block) {
    if (block == NULL) {
        return;
    }
    if (ml_sampler_drops_after_all(ml_this_thread(), block)) {
        ml_next.free(block);
        return;
    }
    recorded_free(block);
}

/* In a process whose boot store has blocks; this is none of it. */
RECORDED void booted_free(void *block) {
    if (ml_likely(ml_sampler_drops(ml_this_thread(), block))) {
        ml_next.free(block);
        return;
    }
    looked_free(block);
}

HOOK void free(void *block) {
    if (ml_sampler_filters(ml_this_thread())) {
        if (ml_likely(ml_sampler_drops(ml_this_thread(), block))) {
            ml_next.free(block); /* which has nothing to do for NULL */
            return;
        }
        looked_free(block);
        return;
    }
    if (block == NULL || ml_boot_store_owns(block)) {
        return;
    }
    if (ml_hook_is_idle(ml_this_thread())) {
        APART;
        ml_next.free(block);
    } else if (ml_sampler_filters_booted(ml_this_thread())) {
        booted_free(block);
    } else {
        recorded_free(block);
    }
}

/* C23. Where the libc is older there is nothing to forward to, and free means the same. */
HOOK void free_sized(void *block, size_t size) {
    if (ml_next.free_sized == NULL) {
        free(block);
        return;
    }
    if (block == NULL || ml_boot_store_owns(block)) {
        return;
    }
    RELEASE(block, ml_next.free_sized(block, size), ml_record_free);
}

HOOK void free_aligned_sized(void *block, size_t alignment, size_t size) {
    if (ml_next.free_aligned_sized == NULL) {
        free(block);
        return;
    }
    if (block == NULL || ml_boot_store_owns(block)) {
        return;
    }
    RELEASE(block, ml_next.free_aligned_sized(block, alignment, size), ml_record_free);
}

/* A block of the boot store moves to the real allocator. Bytes behind it are copied too,
 * harmlessly. */
static void *leave_boot_store(const void *block, size_t size) {
    void *moved = ml_next.malloc(size);
    if (moved != NULL) {
        const size_t room = ml_boot_store_room(block);
        memcpy(moved, block, size < room ? size : room);
    }
    return moved;
}

/* The second half of a realloc. NULL for a size of 0 was a free; nothing more is recorded.
 */
static inline void after_realloc(
    struct ml_thread *thread,
    const struct ml_hook *hook,
    const struct ml_unwind_entry *entry,
    const void *old_block,
    enum ml_freed freed,
    const void *new_block,
    size_t size
) {
    if (hook->lane == NULL) {
        return;
    }
    if (new_block != NULL) {
        ml_hook_alloc(thread, hook, entry, new_block, size);
    } else if (freed != ML_FREED_UNSAID && size != 0) {
        (void)ml_hook_recording(thread);
        ml_record_cancel(hook->lane);
        if (freed == ML_FREED_SAMPLED) {
            ml_sampled_set_add(&ml_process.sampled, (uintptr_t)old_block);
        }
    }
}

#define REALLOCATE(old_block, call, bytes)                                                         \
    const struct ml_unwind_entry entry = ml_unwind_entry_here();                                   \
    struct ml_thread *thread = ml_this_thread();                                                   \
    const struct ml_hook hook = ml_hook_enter(thread, frame_of(&entry));                           \
    enum ml_freed freed = ML_FREED_UNSAID;                                                         \
    if ((old_block) != NULL) {                                                                     \
        freed = ml_hook_free(thread, &hook, (old_block), ML_OP_RESIZE);                            \
    }                                                                                              \
    void *new_block = (call);                                                                      \
    after_realloc(thread, &hook, &entry, (old_block), freed, new_block, (bytes));                  \
    ml_hook_leave(thread, &hook);                                                                  \
    return new_block

/* Of a block of the boot store nobody has heard: what a realloc moves it to is a new one. */
static void *const nothing_recorded = NULL;

/* Whether the block that a realloc takes needs no record. */
static inline bool resizes_unsaid(const void *block) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_sampler_filters(thread)) {
        return ml_sampler_drops(thread, block);
    }
    return ml_likely(!ml_boot_store_owns(block)) &&
           (ml_hook_is_idle(thread) ||
            (ml_sampler_filters_booted(thread) && ml_sampler_drops(thread, block)));
}

RECORDED void *recorded_realloc(void *block, size_t size) {
    if (ml_unlikely(ml_boot_store_owns(block))) {
        REALLOCATE(nothing_recorded, leave_boot_store(block, size), size);
    }
    REALLOCATE(block, ml_next.realloc(block, size), size);
}

HOOK void *realloc(void *block, size_t size) {
    if (block == NULL || resizes_unsaid(block)) {
        PASS(size, ml_next.realloc(block, size))
    }
    return recorded_realloc(block, size);
}

HOOK void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes = 0;
    if (ml_unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        /* Fails in the next allocator too, which sets errno; the block is not touched, so nothing
         * is recorded. */
        return ml_next.reallocarray(block, count, size);
    }
    if (ml_unlikely(ml_boot_store_owns(block))) {
        REALLOCATE(nothing_recorded, leave_boot_store(block, bytes), bytes);
    }
    if (block == NULL || resizes_unsaid(block)) {
        PASS_GUARDED(bytes, ml_next.reallocarray(block, count, size))
    }
    REALLOCATE(block, ml_next.reallocarray(block, count, size), bytes);
}
