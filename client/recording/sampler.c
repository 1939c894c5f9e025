#include "client/recording/sampler.h"

#include "client/recording/record.h"
#include "client/sampling/poisson.h"
#include "client/stream/cost.h"
#include "client/stream/overrun.h"

/* ---- a thread's distance to the next point */

/* Each thread of each process has another state. A forked child has a copy of its parent's, and
 * seeds again. */
static void seed(struct ml_thread *thread) {
    if (thread->seeded == ml_process.generation) {
        return;
    }
    thread->random ^= ml_sys_tsc() ^ (uint64_t)ml_process.pid << 40 ^ (uintptr_t)thread << 13;
    thread->chance = (uint32_t)(thread->random >> 32);
    thread->seeded = ml_process.generation;
}

/* Which frees are recorded. If only a full pipe makes us sample, blocks are recorded exactly again
 * when it has room, so such blocks may always live. */
static enum ml_filter filter_of(uint64_t interval) {
    _Atomic uint32_t *sampled = &ml_process.gate_page->sampled;
    const bool before = atomic_load_explicit(sampled, memory_order_relaxed) != 0;
    if (interval <= 1) {
        return before ? ML_FILTER_NONE : ML_FILTER_OFF;
    }
    if (!before) {
        atomic_store_explicit(sampled, 1, memory_order_relaxed);
    }
    const bool all = __atomic_load_n(&ml_process.control->all_sampled, __ATOMIC_RELAXED) != 0 &&
                     __atomic_load_n(&ml_process.control->sampling_bytes, __ATOMIC_RELAXED) > 1;
    return all ? ML_FILTER_SAMPLED : ML_FILTER_NONE;
}

/* What a hook does for a block and its free that sampling passes over. */
static __attribute__((noinline)) bool pass_alloc(struct ml_thread *thread, size_t size_bytes) {
    return ml_sampler_passes(thread, size_bytes);
}

static __attribute__((noinline)) bool pass_free(struct ml_thread *thread, uintptr_t block) {
    return ml_sampler_filters(thread) && ml_sampler_drops(thread, (const void *)block);
}

/* The quickest of some rounds, as none of them was interrupted then, without the clock's reading.
 * Each takes a microsecond. Half as much again is for what the round has not: the way over two
 * jumps, and a program's own use of the caches and of the branch predictor. */
static void measure_pass(void) {
    _Atomic uint32_t *pass_ticks = &ml_process.pass_ticks_256;
    if (ml_likely(ml_process.control->measures_cost == 0) ||
        atomic_load_explicit(pass_ticks, memory_order_relaxed) != 0) {
        return;
    }
    enum { ROUNDS = 8, PAIRS = 64, STEP_BYTES = 48 };
    struct ml_thread thread = {.control = ml_process_control_generation()};
    thread.filters = thread.control;
    const uint32_t clock_ticks = ml_cost_of_clock();
    uint64_t least = UINT64_MAX;
    for (unsigned round = 0; round < ROUNDS; round++) {
        thread.left = UINT32_MAX;
        uint64_t done = 0;
        const uint64_t since = ml_cost_now();
        for (unsigned i = 0; i < PAIRS; i++) {
            done += pass_alloc(&thread, STEP_BYTES) ? 1 : 0;
            done += pass_free(&thread, (uintptr_t)&thread + (uintptr_t)i * STEP_BYTES) ? 1 : 0;
        }
        const uint64_t with_clock = ml_cost_now() - since;
        const uint64_t took = with_clock > clock_ticks ? with_clock - clock_ticks : 0;
        if (done != 0 && took < least) {
            least = took;
        }
    }
    const uint64_t pass =
        least == UINT64_MAX ? 0 : least * ML_COST_PASS_PART * 3 / (2 * 2 * (uint64_t)PAIRS);
    const uint32_t bounded = pass == 0 ? 1 : pass < UINT32_MAX ? (uint32_t)pass : UINT32_MAX;
    atomic_store_explicit(&ml_process.clock_ticks, clock_ticks, memory_order_relaxed);
    atomic_store_explicit(pass_ticks, bounded, memory_order_relaxed);
}

void ml_sampler_follow(struct ml_thread *thread, bool recording) {
    thread->filters = 0; /* until ml_lifecycle_may_record is done */
    thread->filters_booted = 0;
    if (!recording) {
        ml_sampler_set_way(thread, 0);
        thread->interval = 0;
        thread->filter = ML_FILTER_OFF;
        return;
    }
    const uint64_t interval = ml_overrun_interval();
    const enum ml_filter filter = filter_of(interval);
    measure_pass();
    seed(thread);
    if (interval != thread->interval) {
        /* The distance at the old interval says nothing about the new one's points. */
        thread->interval = interval;
        thread->filter = filter;
        ml_sampler_set_way(
            thread, interval > 1 ? ml_poisson_distance(&thread->random, interval) : 0
        );
    } else {
        thread->filter = filter;
        ml_sampler_hold(thread); /* a call that is passed over is interrupted */
    }
}

void ml_sampler_announce(const struct ml_thread *thread, struct ml_lane *lane) {
    const uint64_t said =
        lane->interval != 0
            ? lane->interval
            : atomic_load_explicit(&ml_process.gate_page->stream_interval, memory_order_relaxed);
    if (thread->interval == 0 || said == thread->interval) {
        return;
    }
    lane->interval = thread->interval;
    struct ml_event event = {.kind = ML_EVENT_SAMPLING};
    event.sampling_bytes = thread->interval;
    ml_lane_record(lane, &event);
}

/* ---- inside a hook */

/* The lane's next record tells of them. */
static inline void forget_skipped(struct ml_thread *thread) {
    thread->passed += thread->skipped;
    thread->skipped = 0;
}

bool ml_sampler_decide(
    struct ml_thread *thread,
    struct ml_poisson_memo *chances,
    uint64_t size_bytes,
    struct ml_poisson_weights *out_weights
) {
    if (size_bytes >= thread->interval) {
        *out_weights = (struct ml_poisson_weights){.bytes = size_bytes, .blocks = 1};
        return true;
    }
    const uint64_t way_bytes = ml_sampler_way(thread);
    if (way_bytes > size_bytes) {
        ml_sampler_set_way(thread, way_bytes - size_bytes - 1);
        return false;
    }
    *out_weights = ml_poisson_weigh(&thread->random, chances, thread->interval, size_bytes);
    ml_sampler_set_way(thread, ml_poisson_distance(&thread->random, thread->interval));
    return true;
}

void ml_sampler_alloc(
    struct ml_thread *thread,
    struct ml_lane *lane,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes
) {
    if (thread->interval <= 1) {
        if (thread->filter != ML_FILTER_OFF) {
            (void)ml_overrun_forget((uintptr_t)block);
        }
        ml_record_alloc(lane, entry, block, size_bytes);
        if (thread->control != ml_process_control_generation()) {
            ml_sampler_late(block);
        }
        return;
    }
    struct ml_poisson_weights weights;
    if (!ml_sampler_decide(thread, &lane->chances, size_bytes, &weights)) {
        thread->skipped++;
        if (thread->filter == ML_FILTER_NONE) {
            ml_overrun_skipped((uintptr_t)block);
        }
        return;
    }
    forget_skipped(thread);
    if (thread->filter == ML_FILTER_NONE) {
        (void)ml_overrun_forget((uintptr_t)block);
    }
    ml_sampled_set_add(&ml_process.sampled, (uintptr_t)block);
    ml_record_alloc_sampled(lane, entry, block, size_bytes, weights.bytes, weights.blocks);
    ml_overrun_recorded();
}

bool ml_sampler_free(
    struct ml_thread *thread,
    struct ml_lane *lane,
    const void *block,
    unsigned op,
    bool *out_sampled
) {
    *out_sampled = false;
    if (thread->filter != ML_FILTER_OFF) {
        if (thread->filter == ML_FILTER_NONE && ml_overrun_forget((uintptr_t)block)) {
            thread->skipped++;
            return false;
        }
        const enum ml_sampled sampled =
            ml_sampled_set_remove(&ml_process.sampled, (uintptr_t)block);
        *out_sampled = sampled == ML_SAMPLED_YES;
        if (sampled == ML_SAMPLED_NOT && thread->filter == ML_FILTER_SAMPLED) {
            thread->skipped++;
            return false;
        }
        op |= sampled == ML_SAMPLED_YES ? 0 : ML_FREE_UNSURE;
        op |= thread->skipped != 0 ? ML_FREE_SKIPPED : 0;
        forget_skipped(thread);
    }
    ml_record_free(lane, block, op);
    return true;
}

void ml_sampler_late(const void *block) {
    if (ml_overrun_interval() > 1 && ml_process_state() == ML_GATE_RECORDING) {
        ml_sampled_set_add(&ml_process.sampled, (uintptr_t)block);
    }
}
