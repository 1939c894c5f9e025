#include "client/check.h"

#include "client/unwind_check.h"

uint32_t ml_check_every;
static struct ml_unwind_checker checker;

void ml_check_open(uint32_t every) {
    if (every != 0 && ml_unwind_checker_open(&checker) == ML_OK) {
        ml_check_every = every;
    }
}

void ml_check_stack(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    struct ml_thread *thread = &ml_thread;
    struct ml_unwind_difference difference;
    if (++lane->unchecked < ml_check_every) {
        return;
    }
    lane->unchecked = 0;
    /* libunwind allocates: as the next allocator's business, which is not recorded. */
    const uint32_t phase = thread->phase;
    ml_hook_calling(thread, ML_PHASE_NEXT);
    const enum ml_unwind_verdict verdict =
        ml_unwind_checker_compare(&checker, &lane->unwind, entry, &difference);
    ml_hook_calling(thread, phase);
    struct ml_staging_header *header = ml_process_staging_header();
    if (verdict != ML_UNWIND_UNJUDGED) {
        __atomic_fetch_add(&header->unwind_checked, 1, __ATOMIC_RELAXED);
    }
    if (verdict == ML_UNWIND_DIFFERENT) {
        __atomic_fetch_add(&header->unwind_differed, 1, __ATOMIC_RELAXED);
    }
}
