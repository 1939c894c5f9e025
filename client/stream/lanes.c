/* Lanes that are free, in a stack of their own, and those that nobody has had yet. */
#include "client/stream/lane.h"

#include "client/stream/arena.h"
#include "client/stream/decoy.h"

/* A lane's name in the stack of free ones, and the lane; never 0. */
static uint32_t name_of(const struct ml_lane *lane) {
    const uint8_t *arena = ml_process.memory.arena.start;
    return (uint32_t)((uint64_t)((const uint8_t *)lane - arena) / ML_ARENA_LANE_ALIGN) + 1;
}

static struct ml_lane *lane_of(uint32_t name) {
    uint8_t *arena = ml_process.memory.arena.start;
    return (struct ml_lane *)(void *)(arena + (uint64_t)(name - 1) * ML_ARENA_LANE_ALIGN);
}

static struct ml_lane *pop_free(void) {
    _Atomic uint64_t *top = &ml_process.gate_page->free_lanes;
    uint64_t seen = atomic_load_explicit(top, memory_order_acquire);
    while ((uint32_t)seen != 0) {
        struct ml_lane *lane = lane_of((uint32_t)seen);
        const uint64_t version = (seen >> 32) + 1;
        const uint64_t next = version << 32 | __atomic_load_n(&lane->next_free, __ATOMIC_RELAXED);
        if (atomic_compare_exchange_weak_explicit(
                top, &seen, next, memory_order_acq_rel, memory_order_acquire
            )) {
            return lane;
        }
    }
    return NULL;
}

static struct ml_lane *first_use(void) {
    struct ml_gate_page *page = ml_process.gate_page;
    struct ml_lane *lane = NULL;
    uint32_t index = atomic_load_explicit(&page->lanes_used, memory_order_relaxed);
    do {
        if (index >= ML_LANES_MAX || !ml_arena_staging_lane(index)) {
            return NULL;
        }
        if (lane == NULL) {
            lane = ml_arena_take(sizeof(*lane), ML_ARENA_LANE_ALIGN);
        }
        if (lane == NULL) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &page->lanes_used, &index, index + 1, memory_order_relaxed, memory_order_relaxed
    ));
    if (ml_process.clock != ML_CLOCK_TSC) {
        atomic_store_explicit(&page->stamps, ML_STAMPS_MONOTONIC, memory_order_release);
    } else if (index > 0) {
        /* Before anything of this lane's thread can be seen: ml_process_ticks. */
        atomic_store_explicit(&page->stamps, ML_STAMPS_SEVERAL, memory_order_release);
    }
    lane->index = index;
    lane->header = ml_process_staging_lane(ml_process.staging, index);
    ml_lease_init(&lane->lease, index);
    _Atomic uint32_t *used = (_Atomic uint32_t *)&ml_process_staging_header()->lanes_used;
    uint32_t seen = atomic_load_explicit(used, memory_order_relaxed);
    while (seen <= index && !atomic_compare_exchange_weak(used, &seen, index + 1)) {
    }
    return lane;
}

struct ml_lane *ml_lane_take(uint32_t thread_id) {
    struct ml_lane *lane = pop_free();
    const bool reused = lane != NULL;
    if (!reused) {
        lane = first_use();
    }
    if (lane == NULL) {
        return NULL;
    }
    lane->thread_id = thread_id;
    lane->thread_node = 0;
    lane->use = 0;
    __atomic_store_n(&lane->header->thread_id, thread_id, __ATOMIC_RELAXED);
    const uint32_t profile = ml_process_profile();
    if (!reused || lane->profile != profile) {
        ml_lane_begin(lane, profile);
    }
    return lane;
}

void ml_lane_give(struct ml_lane *lane) {
    if (ml_unlikely(ml_decoy_is(lane))) {
        return;
    }
    __atomic_store_n(&lane->header->thread_id, 0, __ATOMIC_RELAXED);
    _Atomic uint64_t *top = &ml_process.gate_page->free_lanes;
    uint64_t seen = atomic_load_explicit(top, memory_order_relaxed);
    uint64_t next = 0;
    do {
        __atomic_store_n(&lane->next_free, (uint32_t)seen, __ATOMIC_RELAXED);
        next = ((seen >> 32) + 1) << 32 | name_of(lane);
    } while (!atomic_compare_exchange_weak_explicit(
        top, &seen, next, memory_order_acq_rel, memory_order_relaxed
    ));
}
