#include "client/recording/check.h"

#include "client/recording/hook.h"
#include "client/unwind/check.h"

#if ML_ATTACHED

/* libunwind cannot be opened there. The report says 0 stacks. */
void ml_check_want(uint32_t every) {
    (void)every;
}

void ml_check_stack(struct ml_lane *lane, const struct ml_unwind_entry *entry, bool memo_agrees) {
    (void)lane;
    (void)entry;
    (void)memo_agrees;
}

#else

enum { CHECK_WANTED, CHECK_OPENING, CHECK_OPEN, CHECK_MISSING };

static _Atomic uint32_t check_state;
static struct ml_unwind_checker checker; /* written by the thread that set CHECK_OPENING */

void ml_check_want(uint32_t every) {
    ml_process.check_every = every;
}

/* Open libunwind at the first stack that permits it; true from the next stack on. Opening
 * allocates, which is not recorded: the phase says that the next allocator is at work. To find
 * signal handlers, such a call is walked, and that walk overwrites the present stack. */
static bool is_open(struct ml_thread *thread, const struct ml_lane *lane) {
    uint32_t state = atomic_load_explicit(&check_state, memory_order_acquire);
    if (state != CHECK_WANTED) {
        return state == CHECK_OPEN;
    }
    if (!ml_unwind_checker_may_open(&lane->unwind) ||
        !atomic_compare_exchange_strong(&check_state, &state, CHECK_OPENING)) {
        return false;
    }
    const uint32_t phase = thread->phase;
    ml_hook_calling(thread, ML_PHASE_NEXT);
    state = ml_unwind_checker_open(&checker) == ML_OK ? CHECK_OPEN : CHECK_MISSING;
    ml_hook_calling(thread, phase);
    atomic_store_explicit(&check_state, state, memory_order_release);
    return false;
}

void ml_check_stack(struct ml_lane *lane, const struct ml_unwind_entry *entry, bool memo_agrees) {
    struct ml_thread *thread = ml_this_thread();
    struct ml_staging_header *header = ml_process_staging_header();
    if (!memo_agrees) {
        __atomic_fetch_add(&header->unwind_differed, 1, __ATOMIC_RELAXED);
    }
    if (++lane->unchecked < ml_process.check_every || !is_open(thread, lane)) {
        return;
    }
    lane->unchecked = 0;
    const uint32_t phase = thread->phase;
    ml_hook_calling(thread, ML_PHASE_NEXT);
    const enum ml_unwind_verdict verdict =
        ml_unwind_checker_compare(&checker, &lane->unwind, entry);
    ml_hook_calling(thread, phase);
    if (verdict != ML_UNWIND_UNJUDGED) {
        __atomic_fetch_add(&header->unwind_checked, 1, __ATOMIC_RELAXED);
    }
    if (verdict == ML_UNWIND_DIFFERENT) {
        __atomic_fetch_add(&header->unwind_differed, 1, __ATOMIC_RELAXED);
    }
}

#endif
