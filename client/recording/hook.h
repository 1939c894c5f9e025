/* Entering and leaving a hook. Room: client (private). Context: first and last lines of every
 * interposed allocator function.
 *
 * One rule: a hook calls the next allocator, and code of ours that calls no allocator. `phase`
 * tells a nested call what it interrupts. A stale guard is recognized by its frame's address and
 * dropped: its hook was left by siglongjmp, or with the death of a vfork child. */
#ifndef MEMLOG_CLIENT_RECORDING_HOOK_H
#define MEMLOG_CLIENT_RECORDING_HOOK_H

#include "client/state/process.h"
#include "client/stream/lane.h"

/* On the hook's stack from enter to leave. */
struct ml_hook {
    struct ml_lane *lane; /* where to record; NULL: do not */
    bool plain;           /* entered by the fast path: leaving is two stores */
    bool give_back;       /* the lane was taken for this event alone */
    uint32_t outer_phase;
    uintptr_t outer_frame;
};

struct ml_hook ml_hook_enter_slow(struct ml_thread *thread, uintptr_t frame);
void ml_hook_leave_slow(struct ml_thread *thread, const struct ml_hook *hook);

/* Whether `gate`, a copy of the thread's, is the process's gate, and the control page has not
 * changed. */
static inline bool ml_hook_holds(const struct ml_thread *thread, uint64_t gate) {
    return ml_likely(
        gate == atomic_load_explicit(&ml_process.gate_page->gate, memory_order_relaxed) &&
        thread->control == ml_process_control_generation()
    );
}

/* Whether nothing is recorded. Then a call is forwarded by a jump, without a guard. */
static inline bool ml_hook_is_idle(const struct ml_thread *thread) {
    return ml_unlikely(thread->lane == NULL) && ml_hook_holds(thread, thread->idle_gate);
}

/* The fast path alone, for hooks that keep its state in registers. False: nothing has changed, take
 * the slow path. True: record on thread->lane. That is NULL only if a signal handler gave it back
 * between the comparison and the stores. */
static inline bool ml_hook_enter_plain(struct ml_thread *thread, uintptr_t frame) {
    if (ml_unlikely(!ml_hook_holds(thread, thread->gate) || thread->phase != ML_PHASE_NONE)) {
        return false;
    }
    thread->phase = ML_PHASE_NEXT;
    thread->hook_frame = frame;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static inline void ml_hook_leave_plain(struct ml_thread *thread) {
    atomic_signal_fence(memory_order_seq_cst);
    thread->phase = ML_PHASE_NONE; /* hook_frame says nothing from here on */
}

static inline struct ml_hook ml_hook_enter(struct ml_thread *thread, uintptr_t frame) {
    return ml_hook_enter_plain(thread, frame)
               ? (struct ml_hook){.lane = thread->lane, .plain = true}
               : ml_hook_enter_slow(thread, frame);
}

static inline void ml_hook_leave(struct ml_thread *thread, const struct ml_hook *hook) {
    if (ml_unlikely(!hook->plain)) {
        ml_hook_leave_slow(thread, hook);
        return;
    }
    ml_hook_leave_plain(thread);
}

/* Our own work on the lane begins. Returns the phase that ml_hook_calling restores. On the second
 * lane the phase stays as it is. */
static inline uint32_t ml_hook_recording(struct ml_thread *thread) {
    const uint32_t phase = thread->phase;
    if (ml_likely(phase == ML_PHASE_NEXT)) {
        thread->phase = ML_PHASE_RECORD;
    }
    atomic_signal_fence(memory_order_seq_cst);
    return phase;
}

static inline void ml_hook_calling(struct ml_thread *thread, uint32_t phase) {
    atomic_signal_fence(memory_order_seq_cst);
    thread->phase = phase;
}

#endif
