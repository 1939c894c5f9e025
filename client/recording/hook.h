/* Entering and leaving a hook. Room: client (private). Context: first and last lines of every
 * interposed allocator function.
 *
 * One rule: inside a hook nothing is called but the next allocator and our own code, which calls
 * none. What comes in nested is told apart by `phase`; a guard that nobody can still be behind
 * (siglongjmp left it, or a vfork child died in it) is found by its frame's address and dropped. */
#ifndef MEMLOG_CLIENT_RECORDING_HOOK_H
#define MEMLOG_CLIENT_RECORDING_HOOK_H

#include "client/state/process.h"
#include "client/stream/lane.h"

/* On the hook's stack from enter to leave. */
struct ml_hook {
    struct ml_lane *lane; /* where to record; NULL: do not */
    bool plain;           /* entered the fast way: leaving is two stores */
    bool give_back;       /* the lane is this event's alone */
    uint32_t outer_phase;
    uintptr_t outer_frame;
};

struct ml_hook ml_hook_enter_slow(struct ml_thread *thread, uintptr_t frame);
void ml_hook_leave_slow(struct ml_thread *thread, const struct ml_hook *hook);

/* Whether `gate`, one of the thread's two, still holds, and the control page says nothing new. */
static inline bool ml_hook_holds(const struct ml_thread *thread, uint64_t gate) {
    return ml_likely(
        gate == atomic_load_explicit(&ml_process.gate_page->gate, memory_order_relaxed) &&
        thread->control == ml_process_control_generation()
    );
}

/* Whether nothing is recorded: then a call goes on by a jump, and enters no hook. */
static inline bool ml_hook_is_idle(const struct ml_thread *thread) {
    return ml_unlikely(thread->lane == NULL) && ml_hook_holds(thread, thread->idle_gate);
}

/* The fast way alone, for hooks that keep what is behind it in registers: false: not this time, and
 * nothing has happened. True: thread->lane is where to record; it is NULL only where a signal
 * handler has given it back between what is compared here and what is stored. */
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

/* From calling the next allocator to our own work on the lane; returns what ml_hook_calling puts
 * back. On the second lane the phase stays what it is. */
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
