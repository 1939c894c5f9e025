/* What the client costs its program, as it measures it itself. Room: client (private). Context: the
 * slow path of a hook, which sampling takes for what it records.
 *
 * One rule: nobody waits, and nothing is asked of the kernel: a few hooks read the clock, and add
 * up in the staging's header what all have taken. The service reads it there.
 *
 * One hook of ML_COST_EVERY, by chance, is timed in our code alone, not in the next allocator's,
 * and stands for so many. A hook that was interrupted looks long: what one of them may count is
 * bounded (ML_COST_MOST_TICKS). Calls that sampling passes over are counted, by the store that says
 * that there was one. What each takes is measured once a process, where it is first needed.
 *
 * Reading the clock takes ten nanoseconds where it is the TSC, and a microsecond where it is a
 * system call, which is more than a hook. What it takes is measured too, and counts where the clock
 * was read: once for the hook that is timed, and not for the others that it stands for.
 *
 * Not in it: the client's start, and what the program's own code loses by our use of the caches. */
#ifndef MEMLOG_CLIENT_STREAM_COST_H
#define MEMLOG_CLIENT_STREAM_COST_H

#include "client/state/process.h"

enum {
    ML_COST_EVERY = 16,
    ML_COST_MOST_TICKS = 1 << 17,  /* some 50 us; a chunk into the pipe takes 5 */
    ML_COST_PASSES_TOLD = 1 << 14, /* calls that a thread which records keeps back at most */
    ML_COST_PASS_PART = 256        /* pass_ticks_256 */
};

/* Now, for durations. */
static inline uint64_t ml_cost_now(void) {
    return ml_process.clock == ML_CLOCK_TSC ? ml_sys_tsc() : ml_sys_monotonic_ns();
}

/* Whether this hook is timed: decided, and if so the clock; 0: it is not. */
static inline uint64_t ml_cost_begin(struct ml_thread *thread) {
    thread->timed = 0;
    if (ml_likely(ml_process.control->measures_cost == 0)) {
        return 0;
    }
    enum { MULTIPLIER = 1664525, INCREMENT = 1013904223, TOP_BITS_SHIFT = 28 };
    _Static_assert(ML_COST_EVERY == 1 << (32 - TOP_BITS_SHIFT), "the upper bits decide");
    thread->chance = thread->chance * (uint32_t)MULTIPLIER + (uint32_t)INCREMENT;
    if (ml_likely(thread->chance >> TOP_BITS_SHIFT != 0)) {
        return 0;
    }
    thread->timed = 1;
    thread->spent_ticks = 0;
    return ml_cost_now();
}

/* Behind the next allocator's work; 0: the hook is not timed. */
static inline uint64_t ml_cost_resume(const struct ml_thread *thread) {
    return ml_likely(thread->timed == 0) ? 0 : ml_cost_now();
}

/* Our code has run since then. */
static inline void ml_cost_spent(struct ml_thread *thread, uint64_t since_ticks) {
    if (ml_unlikely(since_ticks != 0)) {
        const uint64_t now = ml_cost_now();
        thread->spent_ticks += now > since_ticks ? now - since_ticks : 0;
        thread->timed = (uint8_t)(thread->timed + (thread->timed < UINT8_MAX ? 1 : 0));
    }
}

/* What reading the clock takes: the time between one reading and the next. */
uint32_t ml_cost_of_clock(void);

/* Add it up, and the calls that were passed over since the last time. */
void ml_cost_tell(struct ml_thread *thread);

/* The hook is over. */
static inline void ml_cost_end(struct ml_thread *thread) {
    if (ml_likely(ml_process.control->measures_cost == 0)) {
        return;
    }
    const uint32_t kept_back = thread->passed + thread->skipped - thread->passed_told;
    if (ml_unlikely(thread->timed != 0 || kept_back > ML_COST_PASSES_TOLD)) {
        ml_cost_tell(thread);
    }
}

#endif
