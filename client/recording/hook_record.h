/* What a hook that was entered records. Room: client (private). Context: between ml_hook_enter and
 * ml_hook_leave, with a lane.
 *
 * One rule: the fast path, inline here, is exact recording. Sampling takes the slow path. */
#ifndef MEMLOG_CLIENT_RECORDING_HOOK_RECORD_H
#define MEMLOG_CLIENT_RECORDING_HOOK_RECORD_H

#include "client/recording/hook.h"
#include "client/recording/record.h"
#include "client/recording/sampler.h"
#include "client/stream/cost.h"

/* Before a record of the fast path, between ml_hook_enter_plain and ml_hook_leave_plain.
 */
static inline void ml_hook_recorded(struct ml_thread *thread) {
    thread->phase = ML_PHASE_RECORD;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Behind such a record. The host may have begun to sample meanwhile. */
static inline void ml_hook_late(const struct ml_thread *thread, const void *block) {
    if (ml_unlikely(thread->control != ml_process_control_generation())) {
        ml_sampler_late(block);
    }
}

/* The next allocator has returned a new block. */
static inline void ml_hook_alloc(
    struct ml_thread *thread,
    const struct ml_hook *hook,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes
) {
    if (ml_likely(hook->plain)) {
        ml_hook_recorded(thread);
        ml_record_alloc(hook->lane, entry, block, size_bytes);
        ml_hook_late(thread, block);
        return;
    }
    const uint64_t began = ml_cost_resume(thread);
    (void)ml_hook_recording(thread);
    ml_sampler_alloc(thread, hook->lane, entry, block, size_bytes);
    ml_cost_spent(thread, began);
}

/* What was recorded of a block's end. */
enum ml_freed {
    ML_FREED_UNSAID, /* nothing: it was not recorded itself, or nothing is */
    ML_FREED_EXACT,
    ML_FREED_SAMPLED /* and the set has it no more */
};

/* The next allocator is about to get a block back, or (op ML_OP_RESIZE) to resize it. */
static inline enum ml_freed ml_hook_free(
    struct ml_thread *thread, const struct ml_hook *hook, const void *block, enum ml_op op
) {
    if (hook->lane == NULL) {
        return ML_FREED_UNSAID;
    }
    if (ml_likely(hook->plain)) {
        ml_hook_recorded(thread);
        ml_record_free(hook->lane, block, op);
        ml_hook_calling(thread, ML_PHASE_NEXT);
        return ML_FREED_EXACT;
    }
    const uint64_t began = ml_cost_resume(thread);
    const uint32_t phase = ml_hook_recording(thread);
    bool sampled = false;
    const bool said = ml_sampler_free(thread, hook->lane, block, op, &sampled);
    ml_cost_spent(thread, began);
    ml_hook_calling(thread, phase);
    return sampled ? ML_FREED_SAMPLED : said ? ML_FREED_EXACT : ML_FREED_UNSAID;
}

#endif
