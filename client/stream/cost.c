#include "client/stream/cost.h"

static void tell_passes(struct ml_thread *thread, struct ml_staging_header *header) {
    const uint32_t passed = thread->passed + thread->skipped;
    const uint32_t more = passed - thread->passed_told;
    thread->passed_told = passed;
    if (more <= INT32_MAX) { /* else a handler has taken some back, or there were too many */
        (void)__atomic_fetch_add(&header->passed_calls, more, __ATOMIC_RELAXED);
    }
}

/* The quickest of some, as it was not interrupted. */
uint32_t ml_cost_of_clock(void) {
    enum { ROUNDS = 8 };
    uint64_t least = UINT32_MAX;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const uint64_t since = ml_cost_now();
        const uint64_t took = ml_cost_now() - since;
        least = took < least ? took : least;
    }
    return (uint32_t)least;
}

/* Each span of `thread` holds one reading of the clock, and took two. */
static uint64_t recording_ticks(const struct ml_thread *thread) {
    const uint64_t readings = (uint64_t)thread->timed - 1;
    const uint64_t read =
        readings * atomic_load_explicit(&ml_process.clock_ticks, memory_order_relaxed);
    const uint64_t spent = thread->spent_ticks > read ? thread->spent_ticks - read : 0;
    const uint64_t counted = spent < ML_COST_MOST_TICKS ? spent : ML_COST_MOST_TICKS;
    return counted * ML_COST_EVERY + 2 * read;
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
        const uint64_t ticks = recording_ticks(thread);
        thread->timed = 0;
        (void)__atomic_fetch_add(&header->recording_ticks, ticks, __ATOMIC_RELAXED);
    }
}
