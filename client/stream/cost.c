#include "client/stream/cost.h"

static void tell_passes(struct ml_thread *thread, struct ml_staging_header *header) {
    const uint32_t passed = thread->passed + thread->skipped;
    const uint32_t more = passed - thread->passed_told;
    thread->passed_told = passed;
    if (more <= INT32_MAX) { /* else a handler has taken some back, or there were too many */
        (void)__atomic_fetch_add(&header->passed_calls, more, __ATOMIC_RELAXED);
    }
}

void ml_cost_tell(struct ml_thread *thread) {
    struct ml_staging_header *header = ml_process_staging_header();
    const uint32_t pass_ticks =
        atomic_load_explicit(&ml_process.pass_ticks_256, memory_order_relaxed);
    if (__atomic_load_n(&header->pass_ticks_256, __ATOMIC_RELAXED) != pass_ticks) {
        __atomic_store_n(&header->pass_ticks_256, pass_ticks, __ATOMIC_RELAXED);
    }
    tell_passes(thread, header);
    if (thread->timed != 0) {
        const uint64_t spent = thread->spent_ticks;
        const uint64_t counted = spent < ML_COST_MOST_TICKS ? spent : ML_COST_MOST_TICKS;
        thread->timed = 0;
        (void
        )__atomic_fetch_add(&header->recording_ticks, counted * ML_COST_EVERY, __ATOMIC_RELAXED);
    }
}
