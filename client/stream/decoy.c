#include "client/stream/decoy.h"

#include <sys/mman.h>

enum { DECOYS = 2 }; /* of the thread's lane, and of its handlers' */

static struct ml_lane *decoys[DECOYS];
static uint8_t *old_staging; /* the parent's, then private memory */
static uint64_t old_staging_bytes;
static uint32_t old_slots;
static bool pending;

/* Of one thread: `saver` is its thread control block. */
static _Atomic uintptr_t saver;
static const struct ml_lane *saved_lane;
static struct ml_lane saved;
static uint64_t saved_arena_used;

void ml_decoy_save(const struct ml_lane *lane) {
    uintptr_t nobody = 0;
    if (lane == NULL ||
        (!atomic_compare_exchange_strong(&saver, &nobody, ml_arch_thread_pointer()) &&
         nobody != ml_arch_thread_pointer())) {
        return;
    }
    saved = *lane;
    saved_lane = lane;
    saved_arena_used = atomic_load(&ml_process.gate_page->arena_used);
}

void ml_decoy_drop_saved(void) {
    if (atomic_load(&saver) == ml_arch_thread_pointer()) {
        saved_lane = NULL;
        saved_arena_used = 0;
        atomic_store(&saver, 0);
    }
}

bool ml_decoy_pending(void) {
    return pending;
}

bool ml_decoy_is(const struct ml_lane *lane) {
    return lane == decoys[0] || lane == decoys[1];
}

void ml_decoy_rewind(struct ml_lane *lane) {
    uint8_t *frame = old_staging + ml_staging_slot_offset(0, 0, old_slots);
    lane->start = frame + ML_FRAME_HEADER_BYTES;
    lane->limit = lane->start + ML_CHUNK_MAX_BYTES - ML_EVENT_HOT_MAX_BYTES;
    lane->origin = 0 - (uintptr_t)lane->start;
    lane->state = (struct ml_event_state){0};
    lane->lease.again = 0;
    lane->next = 0;
    lane->dropped = 0;
    lane->pos = lane->start;
}

static void set(uint32_t which, struct ml_lane *lane) {
    decoys[which] = lane;
    if (lane != NULL && lane == saved_lane && atomic_load(&saver) == ml_arch_thread_pointer()) {
        *lane = saved;
        lane->use = ML_LANE_DECOY;
    } else if (lane != NULL) {
        lane->header = ml_process_staging_lane(old_staging, which);
        lane->use = ML_LANE_DECOY;
        ml_decoy_rewind(lane);
    }
}

void ml_decoy_set(struct ml_lane *lane, struct ml_lane *second) {
    const struct ml_region *region = &ml_process.memory.staging;
    old_staging = ml_process.staging;
    old_staging_bytes = atomic_load_explicit(&region->mapped_bytes, memory_order_relaxed);
    old_slots = ml_process.slots;
    pending = true;
    set(0, lane);
    set(1, second);
}

void ml_decoy_settle(void) {
    (void)ml_sys6(
        SYS_mmap,
        (long)old_staging,
        (long)old_staging_bytes,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
        -1,
        0
    );
    pending = false;
    saved_lane = NULL;
    saved_arena_used = 0;
    atomic_store(&saver, 0);
}

void ml_decoy_forget(void) {
    decoys[0] = NULL;
    decoys[1] = NULL;
}

/* Behind a lane, if it is one. */
static uint64_t end_of(const struct ml_lane *lane) {
    return lane == NULL
               ? 0
               : (uint64_t)((uintptr_t)(lane + 1) - (uintptr_t)ml_process.memory.arena.start);
}

void ml_decoy_step_aside(void) {
    _Atomic uint64_t *used = &ml_process.gate_page->arena_used;
    if (!pending) {
        return;
    }
    const uint64_t ends[] = {saved_arena_used, end_of(decoys[0]), end_of(decoys[1])};
    for (int i = 0; i < 3; i++) {
        if (ends[i] > atomic_load(used)) {
            atomic_store(used, ends[i]);
        }
    }
}

uint64_t ml_decoy_take_count(void) {
    uint64_t events = 0;
    for (int i = 0; i < DECOYS; i++) {
        if (decoys[i] != NULL) {
            events += decoys[i]->header->produced;
            decoys[i]->header->produced = 0;
        }
    }
    return events;
}
