/* Which allocations are recorded. Room: client (private). Context: inside the allocator's hooks;
 * the fast parts inline, before a hook is entered.
 *
 * One rule: whether a block is recorded depends on nothing but its size, the interval, and chance.
 *
 * Every thread walks over the bytes that it asks for (one more for each block, so that empty ones
 * count) and records the blocks in which a Poisson process with a mean distance of `interval` bytes
 * has a point; blocks of at least the interval always. As long as no point can be near, a hook
 * takes its bytes off ml_thread.left and goes on; it looks closer when they do not suffice. In
 * exact mode `left` is 0: one comparison that always goes the same way.
 *
 * `left` is never more than the interval, so that no large block slips through; the rest of the way
 * stands in `rest`. It is 0 too while exactly recorded blocks may live: what is passed over then is
 * looked at (client/stream/overrun.h); and while a hook is at work, so that what comes nested is
 * looked at too. A hook that was left by longjmp leaves it 0, and the next one finds it so. */
#ifndef MEMLOG_CLIENT_RECORDING_SAMPLER_H
#define MEMLOG_CLIENT_RECORDING_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/sampling/sampled_set.h"
#include "client/stream/lane.h"
#include "client/unwind/unwind.h"
#include "ipc/wire/staging.h"

/* ---- a thread's way */

/* What the host wants of this process now, for this thread: interval, filter, the way to the next
 * point. From the slow path of hooks; `recording` false: nothing is recorded. */
void ml_sampler_follow(struct ml_thread *thread, bool recording);

/* Say in the lane at what interval it samples from here on, if it does not know. */
void ml_sampler_announce(const struct ml_thread *thread, struct ml_lane *lane);

/* Whether a block of that size is passed over; if so its bytes are taken off. */
static inline bool ml_sampler_passes(struct ml_thread *thread, size_t size_bytes) {
    uint64_t left = 0;
    /* Carries where as much is left as the block and one byte more: left - size_bytes - 1. A signal
     * handler that draws anew before it is stored is overwritten, and nothing ever falls below 0.
     */
    if (ml_likely(!__builtin_add_overflow(thread->left, ~(uint64_t)size_bytes, &left)) ||
        thread->control != ml_process_control_generation()) {
        return false;
    }
    thread->left = left;
    thread->skipped = 1;
    return true;
}

/* Whether only frees of sampled blocks leave the process. */
static inline bool ml_sampler_filters(const struct ml_thread *thread) {
    return ml_unlikely(thread->filters == ml_process_control_generation());
}

/* Whether the free of that block stays here: surely, at a glance, or after a closer look. */
static inline bool ml_sampler_drops(struct ml_thread *thread, const void *block) {
    if (ml_unlikely(ml_sampled_set_may_have(&ml_process.sampled, (uintptr_t)block))) {
        return false;
    }
    thread->skipped = 1;
    return true;
}

static inline bool ml_sampler_drops_after_all(struct ml_thread *thread, const void *block) {
    if (ml_sampled_set_has(&ml_process.sampled, (uintptr_t)block)) {
        return false;
    }
    thread->skipped = 1;
    return true;
}

/* What is left of the way is not for a nested call: until ml_sampler_let. */
static inline void ml_sampler_hold(struct ml_thread *thread) {
    thread->rest += thread->left;
    thread->left = 0;
    atomic_signal_fence(memory_order_seq_cst);
}

/* As much of the way as may be passed over at a glance. */
static inline void ml_sampler_let(struct ml_thread *thread) {
    atomic_signal_fence(memory_order_seq_cst);
    if (thread->filter == ML_FILTER_SAMPLED) {
        const uint64_t way_bytes = thread->left + thread->rest;
        thread->left = way_bytes < thread->interval ? way_bytes : thread->interval;
        thread->rest = way_bytes - thread->left;
    }
}

/* Around a next allocator that calls itself by name: that is its own business. */
static inline void ml_sampler_pass(struct ml_thread *thread, uintptr_t frame) {
    thread->phase = ML_PHASE_NEXT;
    thread->hook_frame = frame;
    ml_sampler_hold(thread);
}

static inline void ml_sampler_passed(struct ml_thread *thread) {
    ml_sampler_let(thread);
    thread->phase = ML_PHASE_NONE;
}

/* ---- inside a hook that was entered the slow way */

/* The block is new: record it, or not. */
void ml_sampler_alloc(
    struct ml_thread *thread,
    struct ml_lane *lane,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes
);

/* The block is about to be freed, or (op ML_OP_RESIZE) given to realloc: record it, or not. False:
 * not. *out_sampled: it was in the set, and is not any more. */
bool ml_sampler_free(
    struct ml_thread *thread,
    struct ml_lane *lane,
    const void *block,
    unsigned op,
    bool *out_sampled
);

/* A block that was recorded exactly while the host began to sample: its free must find it. */
void ml_sampler_late(const void *block);

#endif
