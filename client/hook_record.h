/* What a hook that was entered records. Room: client (private). Context: between ml_hook_enter and
 * ml_hook_leave, with a lane.
 *
 * One rule: in exact mode a hook is entered the fast way, and everything here is in line for it;
 * whatever has to do with sampling comes from the slow way. */
#ifndef MEMLOG_CLIENT_HOOK_RECORD_H
#define MEMLOG_CLIENT_HOOK_RECORD_H

#include "client/hook.h"
#include "client/record.h"
#include "client/sampler.h"

/* The next allocator has returned a new block, inside a hook that was entered the fast way. */
static inline void ml_hook_alloc_plain(
    struct ml_thread *thread,
    struct ml_lane *lane,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes
) {
    thread->phase = ML_PHASE_RECORD;
    atomic_signal_fence(memory_order_seq_cst);
    ml_record_alloc(lane, entry, block, size_bytes);
    if (ml_unlikely(thread->control != ml_process_control_generation())) {
        ml_sampler_late(block);
    }
}

/* The same in any hook. */
static inline void ml_hook_alloc(
    struct ml_thread *thread,
    const struct ml_hook *hook,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes
) {
    if (ml_likely(hook->plain)) {
        ml_hook_alloc_plain(thread, hook->lane, entry, block, size_bytes);
        return;
    }
    (void)ml_hook_recording(thread);
    ml_sampler_alloc(thread, hook->lane, entry, block, size_bytes);
}

/* What has been said of a block that goes. */
enum ml_freed {
    ML_FREED_UNSAID, /* nothing: it was never recorded, or nothing is */
    ML_FREED_EXACT,
    ML_FREED_SAMPLED /* and it has left the set */
};

/* The next allocator is about to get a block back, or (op ML_OP_RESIZE) to resize it, inside a hook
 * that was entered the fast way. */
static inline void ml_hook_free_plain(
    struct ml_thread *thread, struct ml_lane *lane, const void *block, enum ml_op op
) {
    thread->phase = ML_PHASE_RECORD;
    atomic_signal_fence(memory_order_seq_cst);
    ml_record_free(lane, block, op);
    ml_hook_calling(thread, ML_PHASE_NEXT);
}

/* The same in any hook. */
static inline enum ml_freed ml_hook_free(
    struct ml_thread *thread, const struct ml_hook *hook, const void *block, enum ml_op op
) {
    if (hook->lane == NULL) {
        return ML_FREED_UNSAID;
    }
    if (ml_likely(hook->plain)) {
        ml_hook_free_plain(thread, hook->lane, block, op);
        return ML_FREED_EXACT;
    }
    const uint32_t phase = ml_hook_recording(thread);
    bool sampled = false;
    const bool said = ml_sampler_free(thread, hook->lane, block, op, &sampled);
    ml_hook_calling(thread, phase);
    return sampled ? ML_FREED_SAMPLED : said ? ML_FREED_EXACT : ML_FREED_UNSAID;
}

#endif
