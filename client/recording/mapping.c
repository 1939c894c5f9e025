#include "client/recording/mapping.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "client/recording/hook.h"
#include "client/recording/loader.h"
#include "client/recording/mapping_names.h"
#include "client/recording/record.h"
#include "client/state/process.h"

/* ---- before the stream */

enum { KEPT_MAX = 256 }; /* Chromium's allocators make some 60 */

struct kept {
    uintptr_t address;
    uint64_t length_bytes;
    _Atomic uint32_t kind; /* + 1; 0: not written yet */
};

/* Of the constructor's time. Only the first find room. */
static struct {
    _Atomic uint32_t count;
    struct kept list[KEPT_MAX];
} before;

static void keep(enum ml_mapping_kind kind, uintptr_t address, uint64_t length_bytes) {
    const uint32_t i = atomic_fetch_add_explicit(&before.count, 1, memory_order_relaxed);
    if (i >= KEPT_MAX) {
        atomic_store_explicit(&before.count, KEPT_MAX, memory_order_relaxed);
        return;
    }
    before.list[i].address = address;
    before.list[i].length_bytes = length_bytes;
    atomic_store_explicit(&before.list[i].kind, (uint32_t)kind + 1, memory_order_release);
}

/* What was mapped there meanwhile comes behind it, and counts. */
void ml_mapping_begin(struct ml_lane *lane) {
    ml_loader_record(lane);
    const uint32_t count = atomic_load_explicit(&before.count, memory_order_relaxed);
    for (uint32_t i = 0; i < count && i < KEPT_MAX; i++) {
        const struct kept *kept = &before.list[i];
        const uint32_t kind = atomic_load_explicit(&kept->kind, memory_order_acquire);
        struct ml_event event = {.kind = ML_EVENT_MAPPING};
        event.mapping = (struct ml_event_mapping
        ){.kind = kind - 1,
          .address = kept->address,
          .length_bytes = kept->length_bytes,
          .flags = kind - 1 == ML_MAPPING_MAP ? ML_MAPPING_EARLY : 0};
        if (kind != 0) {
            ml_lane_record(lane, &event);
        }
        atomic_store_explicit(&before.list[i].kind, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&before.count, 0, memory_order_relaxed);
}

/* ---- in the stream */

/* A process made by clone with its parent's memory has its parent's thread-local variables too. */
static bool is_own_thread(const struct ml_thread *thread) {
    return thread->lane == NULL || thread->generation != ml_process.generation ||
           thread->lane->thread_id == (uint32_t)ml_sys0(SYS_gettid);
}

enum place { PLACE_NOWHERE, PLACE_BEFORE, PLACE_NESTED, PLACE_STREAM };

/* Where a record of this moment goes. `frame` is the hook's. */
static enum place place_of(const struct ml_thread *thread, uintptr_t frame) {
    const enum ml_gate_state state = ml_process_state();
    if (!ml_process.connected) {
        return PLACE_BEFORE;
    }
    if ((ml_process.filters & ML_FILTERS_CLOSED) != 0) {
        return PLACE_NOWHERE;
    }
    if (state == ML_GATE_FRESH) {
        const bool may_begin =
            (ml_process.filters & ML_FILTERS_NO_HOST) == 0 && thread->phase == ML_PHASE_NONE;
        return may_begin ? PLACE_STREAM : PLACE_NOWHERE;
    }
    if (state != ML_GATE_RECORDING || !is_own_thread(thread)) {
        return PLACE_NOWHERE;
    }
    if (thread->phase == ML_PHASE_NONE || frame >= thread->hook_frame) {
        return PLACE_STREAM;
    }
    return thread->phase == ML_PHASE_NEXT && thread->lane != NULL &&
                   thread->generation == ml_process.generation
               ? PLACE_NESTED
               : PLACE_NOWHERE; /* a handler's, which has interrupted a record */
}

/* The allocator is at work on behalf of a hook further out, and the lane is at rest. */
static void record_nested(struct ml_thread *thread, struct ml_event *event) {
    const uint32_t phase = ml_hook_recording(thread);
    if (event->mapping.kind == ML_MAPPING_MAP) {
        event->mapping.flags = ML_MAPPING_NESTED;
    }
    ml_lane_record(thread->lane, event);
    ml_hook_calling(thread, phase);
}

static bool needs_stack(const struct ml_event *event) {
    return event->mapping.kind != ML_MAPPING_UNMAP;
}

/* `function`: of a thread's stack; else NULL. */
static void record_here(
    struct ml_thread *thread,
    const struct ml_unwind_entry *entry,
    struct ml_event *event,
    const void *function
) {
    const struct ml_hook hook = ml_hook_enter(thread, entry->sp);
    if (hook.lane != NULL) {
        const uint32_t phase = ml_hook_recording(thread);
        event->mapping.node = function != NULL     ? ml_record_call(hook.lane, entry, function)
                              : needs_stack(event) ? ml_record_node(hook.lane, entry)
                                                   : 0;
        ml_lane_record(hook.lane, event);
        ml_hook_calling(thread, phase);
    }
    ml_hook_leave(thread, &hook);
}

void ml_mapping_note(
    const struct ml_unwind_entry *entry,
    enum ml_mapping_kind kind,
    const void *address,
    uint64_t length_bytes
) {
    const uint64_t mask = ML_MAPPING_PAGE_BYTES - 1;
    struct ml_thread *thread = ml_this_thread();
    struct ml_event event = {.kind = ML_EVENT_MAPPING};
    event.mapping.kind = kind;
    event.mapping.address = (uintptr_t)address;
    event.mapping.length_bytes = (length_bytes + mask) & ~mask;
    if (event.mapping.length_bytes < length_bytes ||
        !ml_event_mapping_is_in_range(&event.mapping)) {
        return; /* the kernel refuses it */
    }
    switch (place_of(thread, entry->sp)) {
    case PLACE_BEFORE:
        keep(kind, (uintptr_t)address, event.mapping.length_bytes);
        break;
    case PLACE_NESTED:
        record_nested(thread, &event);
        break;
    case PLACE_STREAM:
        record_here(thread, entry, &event, NULL);
        break;
    default:
        break;
    }
}

void ml_mapping_stack(
    const struct ml_unwind_entry *entry,
    const void *address,
    uint64_t length_bytes,
    const void *function
) {
    struct ml_thread *thread = ml_this_thread();
    struct ml_event event = {.kind = ML_EVENT_MAPPING};
    event.mapping.kind = ML_MAPPING_STACK;
    event.mapping.address = (uintptr_t)address;
    event.mapping.length_bytes = length_bytes;
    if (ml_event_mapping_is_in_range(&event.mapping) &&
        place_of(thread, entry->sp) == PLACE_STREAM) {
        record_here(thread, entry, &event, function);
    }
}

void ml_mapping_name(const void *address, uint64_t length_bytes, const char *name) {
    const uint64_t mask = ML_MAPPING_PAGE_BYTES - 1;
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    struct ml_thread *thread = ml_this_thread();
    struct ml_event event = {.kind = ML_EVENT_MAPPING};
    event.mapping.kind = ML_MAPPING_NAME;
    event.mapping.address = (uintptr_t)address;
    event.mapping.length_bytes = (length_bytes + mask) & ~mask;
    const enum place place = place_of(thread, frame);
    if (event.mapping.length_bytes == 0 || !ml_event_mapping_is_in_range(&event.mapping) ||
        (place != PLACE_STREAM && place != PLACE_NESTED)) {
        return;
    }
    const struct ml_hook hook = place == PLACE_STREAM ? ml_hook_enter(thread, frame)
                                                      : (struct ml_hook){.lane = thread->lane};
    const uint32_t phase = ml_hook_recording(thread);
    if (hook.lane != NULL && ml_mapping_name_id(hook.lane, name, &event.mapping.string_id)) {
        ml_lane_record(hook.lane, &event);
    }
    ml_hook_calling(thread, phase);
    if (place == PLACE_STREAM) {
        ml_hook_leave(thread, &hook);
    }
}
