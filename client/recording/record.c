#include "client/recording/record.h"

#include <sys/prctl.h>

#include "client/recording/check.h"
#include "client/recording/past.h"
#include "client/stream/module_record.h"
#include "client/stream/overrun.h"
#include "client/stream/stack_table.h"

/* Bounds of the section of functions that stand between the program and libc. */
extern const char __start_memlog_between[] __attribute__((visibility("hidden"), weak));
extern const char __stop_memlog_between[] __attribute__((visibility("hidden"), weak));

/* A frame that the program does not have without memlog. */
static bool is_between(const struct ml_unwind_thread *unwind, uint32_t frame) {
    return unwind->frames[frame].pc - (uintptr_t)__start_memlog_between <
           (uintptr_t)__stop_memlog_between - (uintptr_t)__start_memlog_between;
}

static uint64_t frame_key(const struct ml_unwind_thread *unwind, uint32_t frame) {
    const enum ml_frame_kind kind = ml_unwind_kind(unwind, frame);
    if (ml_likely(kind == ML_FRAME_ADDRESS)) {
        return ml_stack_key_address(
            ml_unwind_module(unwind, frame), ml_unwind_address(unwind, frame)
        );
    }
    return ml_stack_key_string(kind, 0);
}

/* Walk the stack and look its new frames up. */
static uint32_t walked_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    struct ml_unwind_thread *unwind = &lane->unwind;
    const struct ml_module_seen seen = {.function = ml_module_record, .context = lane};
    if (ml_unlikely(lane->second != 0)) {
        if (lane->second == ML_LANE_DECOY) {
            return 0; /* nobody reads what is defined there */
        }
        ml_unwind_thread_clear(unwind);
    }
    const struct ml_unwind_result result = ml_unwind(ml_process.unwind, unwind, entry, &seen);
    if (ml_unlikely((result.flags & (ML_UNWIND_CUT | ML_UNWIND_BROKEN)) != 0)) {
        struct ml_staging_header *header = ml_process_staging_header();
        if ((result.flags & ML_UNWIND_CUT) != 0) {
            __atomic_fetch_add(&header->truncated_stacks, 1, __ATOMIC_RELAXED);
        }
        if ((result.flags & ML_UNWIND_BROKEN) != 0) {
            __atomic_fetch_add(&header->broken_stacks, 1, __ATOMIC_RELAXED);
        }
    }
    uint32_t node = result.kept == 0 ? lane->thread_node : ml_unwind_node(unwind, result.kept - 1);
    for (uint32_t frame = result.kept; frame < result.count; frame++) {
        if (ml_unlikely(is_between(unwind, frame))) {
            ml_unwind_set_node(unwind, frame, node);
            continue;
        }
        const uint32_t child =
            ml_stack_child(lane, node, frame_key(unwind, frame), ml_unwind_module(unwind, frame));
        if (ml_unlikely(child == 0)) {
            /* The table is full: the event belongs to the last frame that found room. */
            ml_unwind_thread_clear(unwind);
            return node;
        }
        node = child;
        ml_unwind_set_node(unwind, frame, node);
    }
    return node;
}

uint32_t
ml_record_call(struct ml_lane *lane, const struct ml_unwind_entry *entry, const void *function) {
    const struct ml_module_seen seen = {.function = ml_module_record, .context = lane};
    const uint32_t caller = ml_record_node(lane, entry);
    struct ml_image image;
    uint32_t module = 0;
    if (ml_image_find((uintptr_t)function, &image)) {
        module = ml_modules_id(&ml_process.unwind->modules, &image, &seen);
        ml_module_define(lane, module, (uintptr_t)function);
    }
    const uint64_t key = ml_stack_key_address(module, (uintptr_t)function);
    const uint32_t node = ml_stack_child(lane, caller, key, module);
    return node != 0 ? node : caller;
}

static uint32_t new_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    const uint32_t node = walked_node(lane, entry);
    if (lane->second == 0 && node != 0) {
        ml_unwind_memo_keep(&lane->unwind, ml_process.unwind, entry, node);
        ml_past_step(entry->pc);
    }
    return node;
}

/* --unwind-check: walk each time, and compare the memo's answer with the walk's. No stack is left
 * expected, so every event comes here. */
static __attribute__((noinline)) uint32_t
checked_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    const struct ml_unwind_process *process = ml_process.unwind;
    struct ml_unwind_memo *memo = &lane->unwind.memo;
    uint32_t found = 0;
    if (lane->second == 0) {
        ml_unwind_memo_expect_again(memo, &process->memos);
        found = ml_unwind_memo_find(
            memo,
            &process->memos,
            atomic_load_explicit(&process->unloads, memory_order_relaxed),
            entry
        );
    }
    const uint32_t node = found == 0 ? new_node(lane, entry) : walked_node(lane, entry);
    ml_check_stack(lane, entry, found == 0 || ml_stack_same_path(found, node));
    memo->expected = NULL;
    return node;
}

__attribute__((noinline)) uint32_t
ml_record_node_slow(struct ml_lane *lane, struct ml_unwind_entry entry) {
    const struct ml_unwind_process *process = ml_process.unwind;
    uint32_t node = 0;
    if (ml_unlikely(ml_process.check_every != 0)) {
        return checked_node(lane, &entry);
    }
    if (ml_likely(lane->second == 0)) {
        node = ml_unwind_memo_search(
            &lane->unwind.memo,
            &process->memos,
            atomic_load_explicit(&process->unloads, memory_order_relaxed),
            &entry
        );
    }
    return ml_likely(node != 0) ? node : new_node(lane, &entry);
}

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

/* The thread's name as a stack root: a string of its own, and a node below no other. */
static void name_root(struct ml_lane *lane, const struct ml_event_thread *thread) {
    const uint32_t id = ml_record_string(lane, thread->name, thread->name_bytes);
    if (id == 0) {
        return;
    }
    lane->thread_node = ml_stack_child(lane, 0, ml_stack_key_string(ML_FRAME_THREAD, id), 0);
    ml_unwind_thread_clear(&lane->unwind);
}

void ml_record_thread(struct ml_lane *lane) {
    struct ml_event event = {.kind = ML_EVENT_THREAD};
    char name[ML_THREAD_NAME_MAX_BYTES] = "";
    event.thread.thread_id = lane->thread_id;
    event.thread.name = (const uint8_t *)name;
    const bool named = ml_process_stack_mode() == ML_STACK_NATIVE_WITH_THREAD_NAMES &&
                       (ml_process.filters & ML_FILTERS_NO_NAME) == 0;
    if (named && ml_sys3(SYS_prctl, PR_GET_NAME, (long)name, 0) == 0) {
        while (event.thread.name_bytes < sizeof(name) - 1 && name[event.thread.name_bytes] != 0) {
            event.thread.name_bytes++;
        }
    }
    ml_lane_record(lane, &event);
    if (named) {
        name_root(lane, &event.thread);
    }
}

void ml_record_unload(void *lane, uint32_t module_id) {
    struct ml_event event = {.kind = ML_EVENT_UNLOAD};
    event.unload_module = module_id;
    ml_lane_record(lane, &event);
}
