#include "client/recording/record.h"

#include <sys/prctl.h>

#include "client/recording/notes.h"
#include "client/recording/scripts.h"
#include "client/stream/overrun.h"
#include "client/stream/stack_table.h"

void ml_record_alloc(
    struct ml_lane *lane, const struct ml_unwind_entry *entry, const void *block, size_t size_bytes
) {
    ml_record_alloc_here(lane, entry, block, size_bytes);
}

void ml_record_alloc_sampled(
    struct ml_lane *lane,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes,
    uint64_t weight_bytes,
    uint64_t weight_blocks
) {
    const uint32_t node = ml_record_node(lane, entry);
    uint8_t *pos = ml_lane_room(lane);
    ml_lane_busy(lane);
    pos = ml_put_alloc_sampled(
        pos,
        &lane->state,
        ml_lane_stamp(lane),
        (uintptr_t)block,
        size_bytes,
        node,
        weight_bytes,
        weight_blocks
    );
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}

void ml_record_free(struct ml_lane *lane, const void *block, unsigned op) {
    ml_record_free_here(lane, block, op);
}

void ml_record_cancel(struct ml_lane *lane) {
    uint8_t *pos = ml_lane_room(lane);
    ml_lane_busy(lane);
    pos = ml_put_cancel(pos, &lane->state, ml_lane_stamp(lane));
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}

void ml_record_start(struct ml_lane *lane, uint64_t fork_serial) {
    const uint64_t interval = ml_overrun_interval();
    atomic_store_explicit(&ml_process.gate_page->stream_interval, interval, memory_order_relaxed);
    lane->interval = interval;
    struct ml_event event = {.kind = ML_EVENT_START};
    event.start = (struct ml_event_start){
        .version = ML_STREAM_VERSION,
        .clock = ml_process.clock,
        .pid = ml_process.pid,
        .thread_id = lane->thread_id,
        .ticks = ml_process_ticks(),
        .monotonic_ns = ml_sys_monotonic_ns(),
        .sampling_bytes = interval,
        .stack_mode = ml_process_stack_mode(),
        .page_bytes = 4096,
        .fork_serial = fork_serial,
    };
    ml_lane_record(lane, &event);
}

/* A string id that is new in the profile; each profile counts from 1. */
static uint32_t next_string(uint32_t profile) {
    _Atomic uint64_t *next = &ml_process.gate_page->next_string;
    uint64_t seen = atomic_load_explicit(next, memory_order_relaxed);
    uint64_t mine = 0;
    do {
        mine = (uint32_t)(seen >> 32) == profile ? seen + 1 : (uint64_t)profile << 32 | 1;
    } while (!atomic_compare_exchange_weak_explicit(
        next, &seen, mine, memory_order_relaxed, memory_order_relaxed
    ));
    return (uint32_t)mine;
}

uint32_t ml_record_string(struct ml_lane *lane, const uint8_t *bytes, uint32_t count_bytes) {
    struct ml_event event = {.kind = ML_EVENT_STRING};
    const uint32_t id = next_string(lane->profile);
    if (id >= ML_STRINGS_MAX) {
        return 0;
    }
    event.name.id = id;
    event.name.bytes = bytes;
    event.name.bytes_count = count_bytes;
    ml_lane_record(lane, &event);
    return id;
}

/* The thread's name as a stack root, below no other node. */
static void name_root(struct ml_lane *lane, uint32_t id) {
    if (id == 0) {
        return;
    }
    lane->thread_node = ml_stack_child(lane, 0, ml_stack_key_string(ML_FRAME_THREAD, id), 0);
    ml_unwind_thread_clear(&lane->unwind);
}

/* What the lane's stacks are made of, in its present profile. */
static void use_for_mode(struct ml_lane *lane, uint32_t mode) {
    lane->use &= ~(uint32_t)(ML_LANE_PSEUDO | ML_LANE_MIXED | ML_LANE_SCRIPTS);
    lane->use |= mode == ML_STACK_PSEUDO ? ML_LANE_PSEUDO : 0;
    lane->use |= mode == ML_STACK_MIXED ? ML_LANE_MIXED : 0;
    lane->use |= mode != ML_STACK_PSEUDO && ml_scripts_wanted() ? ML_LANE_SCRIPTS : 0;
}

void ml_record_thread(struct ml_lane *lane) {
    const uint32_t mode = ml_process_stack_mode();
    struct ml_event event = {.kind = ML_EVENT_THREAD};
    char name[ML_THREAD_NAME_MAX_BYTES] = "";
    event.thread.thread_id = lane->thread_id;
    event.thread.name = (const uint8_t *)name;
    const struct ml_thread_notes *notes = ml_this_thread()->notes;
    struct ml_name *own = notes != NULL ? notes->thread_name : NULL;
    const bool named = mode >= ML_STACK_NATIVE_WITH_THREAD_NAMES &&
                       (own != NULL || (ml_process.filters & ML_FILTERS_NO_NAME) == 0);
    if (named && own != NULL) {
        const uint32_t most = sizeof(name) - 1;
        event.thread.name = (const uint8_t *)own->text;
        event.thread.name_bytes = own->text_bytes < most ? own->text_bytes : most;
    } else if (named && ml_sys3(SYS_prctl, PR_GET_NAME, (long)name, 0) == 0) {
        while (event.thread.name_bytes < sizeof(name) - 1 && name[event.thread.name_bytes] != 0) {
            event.thread.name_bytes++;
        }
    }
    ml_lane_record(lane, &event);
    use_for_mode(lane, mode);
    if (named) {
        name_root(
            lane,
            own != NULL ? ml_name_string(lane, own)
                        : ml_record_string(lane, event.thread.name, event.thread.name_bytes)
        );
    }
}

void ml_record_unload(void *lane, uint32_t module_id) {
    struct ml_event event = {.kind = ML_EVENT_UNLOAD};
    event.unload_module = module_id;
    ml_lane_record(lane, &event);
}
