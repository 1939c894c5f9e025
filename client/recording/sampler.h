/* Which allocations are recorded. Room: client (private). Context: inside the allocator's hooks;
 * the fast parts inline, before a hook is entered.
 *
 * One rule: whether a block is recorded depends on its size, the interval and chance alone.
 *
 * Points of a Poisson process, `interval` bytes apart on average, lie on the bytes that a thread
 * allocates. A block has one byte more than its size, so that empty ones count. A block with a
 * point in it is recorded; so is every block of at least the interval. While the next point is far,
 * a hook subtracts the block's bytes from ml_this_thread()->left and forwards the call. When `left`
 * does not suffice, it takes the slow path. In exact mode `left` is 0: one comparison, always with
 * the same result.
 *
 * `left` is at most the interval, so that no large block slips through; `rest` is the further
 * distance. `left` is also 0 while exactly recorded blocks may live: then skipped blocks are
 * remembered (client/stream/overrun.h). And it is 0 while a hook is at work, so that nested calls
 * take the slow path. A hook that was left by longjmp leaves it 0. A call that is passed over with
 * the guard has put it aside in `held`. The distance is the sum of the three. */
#ifndef MEMLOG_CLIENT_RECORDING_SAMPLER_H
#define MEMLOG_CLIENT_RECORDING_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/sampling/sampled_set.h"
#include "client/stream/lane.h"
#include "client/unwind/unwind.h"
#include "ipc/wire/staging.h"

/* ---- a thread's distance to the next point */

/* Take over for this thread what the host wants now: interval and filter. Draws a new distance if
 * the interval has changed. From the slow path of hooks; `recording` false: nothing is recorded. */
void ml_sampler_follow(struct ml_thread *thread, bool recording);

/* Record in the lane the interval of what follows, if it is another one. */
void ml_sampler_announce(const struct ml_thread *thread, struct ml_lane *lane);

/* Whether a block of that size is skipped. If so, its bytes are subtracted. */
static inline bool ml_sampler_passes(struct ml_thread *thread, size_t size_bytes) {
    uint64_t left = 0;
    /* Overflows if `left` suffices for the block and one byte more; the sum is left - size_bytes
     * - 1. A distance that a signal handler draws before the store is overwritten, and nothing
     * falls below 0.
     */
    if (ml_likely(!__builtin_add_overflow(thread->left, ~(uint64_t)size_bytes, &left)) ||
        thread->control != ml_process_control_generation()) {
        return false;
    }
    thread->left = left;
    thread->skipped++;
    return true;
}

/* Whether only frees of sampled blocks leave the process, and the boot store has no block that
 * could be freed. */
static inline bool ml_sampler_filters(const struct ml_thread *thread) {
    return ml_unlikely(thread->filters == ml_process_control_generation());
}

/* Whether only frees of sampled blocks leave the process, and the boot store has blocks: whoever
 * asks has seen that this is none, or hooks an operator delete whose new does not call malloc. */
static inline bool ml_sampler_filters_booted(const struct ml_thread *thread) {
    return ml_unlikely(thread->filters_booted == ml_process_control_generation());
}

/* Whether the free of that block needs no record: by the first load of the set, or by all of it. */
static inline bool ml_sampler_drops(struct ml_thread *thread, const void *block) {
    if (ml_unlikely(ml_sampled_set_may_have(&ml_process.sampled, (uintptr_t)block))) {
        return false;
    }
    thread->skipped++;
    return true;
}

static inline bool ml_sampler_drops_after_all(struct ml_thread *thread, const void *block) {
    if (ml_sampled_set_has(&ml_process.sampled, (uintptr_t)block)) {
        return false;
    }
    thread->skipped++;
    return true;
}

/* All of the distance, as one that calls must not skip by. */
static inline void ml_sampler_set_way(struct ml_thread *thread, uint64_t way_bytes) {
    thread->left = 0;
    thread->held = 0;
    thread->rest = way_bytes;
}

static inline uint64_t ml_sampler_way(const struct ml_thread *thread) {
    return thread->left + thread->held + thread->rest;
}

/* A nested call must not skip blocks, until ml_sampler_let. */
static inline void ml_sampler_hold(struct ml_thread *thread) {
    ml_sampler_set_way(thread, ml_sampler_way(thread));
    atomic_signal_fence(memory_order_seq_cst);
}

/* Let hooks skip blocks again, as far as the next point permits. */
static inline void ml_sampler_let(struct ml_thread *thread) {
    atomic_signal_fence(memory_order_seq_cst);
    if (thread->filter == ML_FILTER_SAMPLED) {
        const uint64_t way_bytes = ml_sampler_way(thread);
        thread->held = 0;
        thread->left = way_bytes < thread->interval ? way_bytes : thread->interval;
        thread->rest = way_bytes - thread->left;
    }
}

/* Around a call of a next allocator that may call others of its functions by what is hooked: its
 * nested calls are not recorded. `left` comes back as it was, unless a signal handler has moved the
 * next point or the interval: then `held` is 0, and the next call takes the slow path. */
static inline void ml_sampler_pass(struct ml_thread *thread, uintptr_t frame) {
    thread->phase = ML_PHASE_NEXT;
    thread->hook_frame = frame;
    thread->held = thread->left;
    thread->left = 0;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void ml_sampler_passed(struct ml_thread *thread) {
    atomic_signal_fence(memory_order_seq_cst);
    thread->left = thread->held;
    thread->held = 0;
    thread->phase = ML_PHASE_NONE;
}

/* ---- inside a hook that was entered by the slow path */

/* Whether a block is recorded, by the points alone, and then what it stands for; where the fast
 * part has not passed it over. Draws the next point behind it. */
bool ml_sampler_decide(
    struct ml_thread *thread,
    struct ml_poisson_memo *chances,
    uint64_t size_bytes,
    struct ml_poisson_weights *out_weights
);

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

/* A block was recorded exactly while the host began to sample: add it to the set, so that its free
 * is recorded. */
void ml_sampler_late(const void *block);

#endif
