/* Entering and leaving a hook the slow way: what the guard that it finds set stands for. */
#include "client/recording/hook.h"

#include <signal.h>

#include "client/recording/lifecycle.h"
#include "client/recording/nested.h"
#include "client/recording/sampler.h"
#include "client/stream/cost.h"

/* Whether `frame` and the present stack pointer are on the alternate signal stack. */
static bool on_alternate_stack(uintptr_t frame, bool *out_frame_too) {
    stack_t now = {.ss_flags = SS_DISABLE};
    if (ml_sys3(SYS_sigaltstack, 0, (long)&now, 0) != 0 || (now.ss_flags & SS_ONSTACK) == 0) {
        return false;
    }
    *out_frame_too = frame - (uintptr_t)now.ss_sp < now.ss_size;
    return true;
}

/* What the guard that a hook finds set stands for. */
enum guard {
    GUARD_STALE,  /* nothing: its hook was left by siglongjmp, or was of a vfork child that died */
    GUARD_SIGNAL, /* a hook that a signal handler interrupted */
    GUARD_NEAR    /* a hook further out on the same stack */
};

/* Stacks grow down, so a hook whose frame lies below the new one's on the same stack has been left
 * without ml_hook_leave. */
static enum guard guard_of(const struct ml_thread *thread, uintptr_t frame) {
    bool guard_on_alternate = false;
    if (on_alternate_stack(thread->hook_frame, &guard_on_alternate) && !guard_on_alternate) {
        return GUARD_SIGNAL;
    }
    return frame >= thread->hook_frame ? GUARD_STALE : GUARD_NEAR;
}

/* Repair what the hook of a stale guard has left half done. */
static void repair(struct ml_thread *thread) {
    struct ml_lane *lane = thread->phase == ML_PHASE_SECOND ? thread->second : thread->lane;
    if (thread->phase != ML_PHASE_NEXT && lane != NULL &&
        thread->generation == ml_process.generation && ml_process_state() != ML_GATE_FRESH) {
        ml_lane_repair(lane);
    }
}

static struct ml_hook not_recorded(const struct ml_thread *thread) {
    return (struct ml_hook
    ){.lane = NULL, .outer_phase = thread->phase, .outer_frame = thread->hook_frame};
}

/* A signal handler that allocates while a hook below it is at work on this thread's lane, or in the
 * next allocator. */
static struct ml_hook enter_second(struct ml_thread *thread, uintptr_t frame) {
    struct ml_hook hook = not_recorded(thread);
    if (thread->generation != ml_process.generation || ml_process_state() != ML_GATE_RECORDING) {
        return hook;
    }
    if (thread->phase == ML_PHASE_SECOND) {
        __atomic_fetch_add(&ml_process_staging_header()->lost_nested, 1, __ATOMIC_RELAXED);
        return hook;
    }
    thread->phase = ML_PHASE_SECOND;
    thread->hook_frame = frame;
    atomic_signal_fence(memory_order_seq_cst);
    if (thread->second == NULL) {
        thread->second = ml_lifecycle_lane(true);
    } else {
        ml_lifecycle_lane_update(thread->second);
    }
    hook.lane = thread->second;
    return hook;
}

/* A call that comes while the next allocator is at work. The lane is at rest then, so the walk may
 * use it. A handler that interrupts the walk finds the lane busy. */
static enum ml_nested look_at_nested(struct ml_thread *thread, uintptr_t frame) {
    if (thread->lane == NULL || thread->generation != ml_process.generation ||
        ml_process_state() != ML_GATE_RECORDING) {
        return ML_NESTED_OWN;
    }
    const uintptr_t outer_frame = thread->hook_frame;
    const uint32_t phase = ml_hook_recording(thread);
    const enum ml_nested what = ml_nested_what(thread->lane, frame, outer_frame);
    ml_hook_calling(thread, phase);
    return what;
}

/* Whether the thread samples, and neither host nor pipe has changed the interval since its last
 * look. A change moves the gate or the control page's generation. */
static bool may_sample(const struct ml_thread *thread) {
    return thread->sampling_gate ==
               atomic_load_explicit(&ml_process.gate_page->gate, memory_order_relaxed) &&
           thread->control == ml_process_control_generation();
}

#if ML_ATTACHED
static bool is_nobody(const struct ml_thread *thread) {
    return ml_unlikely(thread == &ml_thread_nobody);
}

/* There is no place for the thread in the table. Its event is lost. */
static struct ml_hook lose(void) {
    if (ml_process_state() == ML_GATE_RECORDING) {
        __atomic_fetch_add(&ml_process_staging_header()->lost_no_lane, 1, __ATOMIC_RELAXED);
        ml_lifecycle_find_ended();
    }
    return (struct ml_hook){.lane = NULL};
}
#endif

struct ml_hook ml_hook_enter_slow(struct ml_thread *thread, uintptr_t frame) {
#if ML_ATTACHED
    if (is_nobody(thread)) {
        return lose();
    }
#endif
    const bool abandoned = thread->phase != ML_PHASE_NONE;
    if (!abandoned && ml_hook_is_idle(thread)) {
        thread->phase = ML_PHASE_NEXT;
        thread->hook_frame = frame;
        return (struct ml_hook){.lane = NULL, .plain = true};
    }
    if (abandoned) {
        ml_lifecycle_after_fork_in_child(); /* of a fork that no hook saw */
        const enum guard guard = guard_of(thread, frame);
        const bool asks = guard == GUARD_NEAR && thread->phase == ML_PHASE_NEXT;
        const enum ml_nested nested = guard == GUARD_STALE ? ML_NESTED_NONE
                                      : asks               ? look_at_nested(thread, frame)
                                                           : ML_NESTED_SIGNAL;
        if (nested != ML_NESTED_NONE) {
            return nested == ML_NESTED_OWN ? not_recorded(thread) : enter_second(thread, frame);
        }
        repair(thread);
    }
    thread->phase = ML_PHASE_RECORD;
    thread->hook_frame = frame;
    atomic_signal_fence(memory_order_seq_cst);
    const uint64_t began = ml_cost_begin(thread);
    ml_sampler_hold(thread);
    struct ml_hook hook = {.lane = NULL};
    if (ml_likely(may_sample(thread))) {
        hook.lane = thread->lane;
    } else if (ml_lifecycle_may_record(thread)) {
        if (thread->exit_rounds == ML_THREAD_GONE) {
            hook.lane = ml_lifecycle_lane(false);
            hook.give_back = hook.lane != NULL;
        } else {
            hook.lane = thread->lane;
        }
    }
    ml_cost_spent(thread, began);
    thread->phase = ML_PHASE_NEXT;
    return hook;
}

void ml_hook_leave_slow(struct ml_thread *thread, const struct ml_hook *hook) {
    atomic_signal_fence(memory_order_seq_cst);
    if (hook->give_back) {
        ml_lane_give(hook->lane);
    }
    if (hook->outer_phase == ML_PHASE_NONE) {
        if (hook->lane != NULL) {
            ml_cost_end(thread);
        }
        ml_sampler_let(thread);
    }
    thread->phase = hook->outer_phase;
    thread->hook_frame = hook->outer_frame;
}
