#include "ipc/wire/event_decode_internal.h"

static enum ml_status decode_start(struct ml_reader *r, struct ml_event_start *start) {
    *start = (struct ml_event_start){.version = 0};
    enum ml_status status = ml_take_u32(r, 0, UINT32_MAX, &start->version);
    if (status == ML_OK && start->version != ML_STREAM_VERSION) {
        status = ML_PEER_VERSION;
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, ML_CLOCK_COUNT - 1, &start->clock);
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, UINT32_MAX, &start->pid);
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, UINT32_MAX, &start->thread_id);
    }
    if (status == ML_OK) {
        status = ml_take_varint(r, &start->ticks);
    }
    if (status == ML_OK) {
        status = ml_take_varint(r, &start->monotonic_ns);
    }
    if (status == ML_OK) {
        status = ml_take_bounded(r, 1, ML_SIZE_MAX_BYTES, &start->sampling_bytes);
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, ML_STACK_MODE_COUNT - 1, &start->stack_mode);
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, UINT32_MAX, &start->page_bytes);
    }
    if (status == ML_OK) {
        status = ml_take_varint(r, &start->fork_serial);
    }
    return status;
}

static enum ml_status
take_blob(struct ml_reader *r, size_t max_bytes, const uint8_t **out_bytes, uint32_t *out_count) {
    size_t count = 0;
    const enum ml_status status = ml_reader_blob(r, max_bytes, out_bytes, &count);
    *out_count = (uint32_t)count;
    return status;
}

static enum ml_status decode_thread(struct ml_reader *r, struct ml_event_thread *thread) {
    *thread = (struct ml_event_thread){.thread_id = 0};
    enum ml_status status = ml_take_u32(r, 0, UINT32_MAX, &thread->thread_id);
    if (status == ML_OK) {
        status = take_blob(r, ML_THREAD_NAME_MAX_BYTES - 1, &thread->name, &thread->name_bytes);
    }
    return status;
}

static enum ml_status decode_module(struct ml_reader *r, struct ml_event_module *module) {
    *module = (struct ml_event_module){.id = 0};
    uint64_t length = 0;
    enum ml_status status = ml_take_u32(r, 1, ML_MODULES_MAX - 1, &module->id);
    if (status == ML_OK) {
        status = ml_take_bounded(r, 0, ML_ADDRESS_MAX - 1, &module->start);
    }
    if (status == ML_OK) {
        status = ml_take_bounded(r, 1, ML_ADDRESS_MAX - module->start, &length);
    }
    if (status == ML_OK) {
        module->end = module->start + length;
        status = ml_take_zigzag(r, &module->bias);
    }
    if (status == ML_OK) {
        status = take_blob(r, ML_BUILD_ID_MAX_BYTES, &module->build_id, &module->build_id_bytes);
    }
    if (status == ML_OK) {
        status = take_blob(r, ML_PATH_MAX_BYTES, &module->path, &module->path_bytes);
    }
    return status;
}

/* STRING, TYPE, HEAP. */
static enum ml_status
decode_name(struct ml_reader *r, enum ml_event_kind kind, struct ml_event_name *name) {
    *name = (struct ml_event_name){.id = 0};
    const uint32_t most = kind == ML_EVENT_STRING ? ML_STRINGS_MAX
                          : kind == ML_EVENT_TYPE ? ML_TYPES_MAX
                                                  : ML_HEAPS_MAX;
    enum ml_status status = ml_take_u32(r, 1, most - 1, &name->id);
    if (status != ML_OK) {
        return status;
    }
    if (kind == ML_EVENT_STRING) {
        return take_blob(r, ML_STRING_MAX_BYTES, &name->bytes, &name->bytes_count);
    }
    return ml_take_u32(r, 1, ML_STRINGS_MAX - 1, &name->string_id);
}

static enum ml_status decode_mapping(struct ml_reader *r, struct ml_event_mapping *mapping) {
    *mapping = (struct ml_event_mapping){.kind = 0};
    enum ml_status status = ml_take_u32(r, 0, ML_MAPPING_KIND_COUNT - 1, &mapping->kind);
    uint64_t *const sizes[] = {
        &mapping->address,
        &mapping->length_bytes,
        &mapping->old_address,
        &mapping->old_length_bytes};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && status == ML_OK; i++) {
        status = ml_take_bounded(r, 0, ML_ADDRESS_MAX, sizes[i]);
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, UINT32_MAX, &mapping->protection);
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, UINT32_MAX, &mapping->flags);
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 0, ML_NODES_MAX - 1, &mapping->node);
    }
    return status;
}

static enum ml_status decode_loss(struct ml_reader *r, struct ml_event *event) {
    enum ml_status status = ml_take_u32(r, 0, ML_LOSS_REASON_COUNT - 1, &event->loss.reason);
    if (status == ML_OK) {
        status = ml_take_bounded(r, 1, ML_SIZE_MAX_BYTES, &event->loss.count);
    }
    return status;
}

/* What stands behind the time of the EXTENDED kinds that have one. */
static enum ml_status decode_timed(struct ml_reader *r, struct ml_event *event) {
    switch (event->kind) {
    case ML_EVENT_SAMPLING:
        return ml_take_bounded(r, 1, ML_SIZE_MAX_BYTES, &event->sampling_bytes);
    case ML_EVENT_FORK:
        return ml_take_bounded(r, 1, UINT64_MAX, &event->fork_serial);
    case ML_EVENT_REAPED:
        return ml_take_u32(r, 1, UINT32_MAX, &event->reaped_pid);
    case ML_EVENT_END:
        return ml_take_u32(r, 0, ML_END_KIND_COUNT - 1, &event->end_kind);
    case ML_EVENT_MAPPING:
        return decode_mapping(r, &event->mapping);
    case ML_EVENT_UNLOAD:
        return ml_take_u32(r, 1, ML_MODULES_MAX - 1, &event->unload_module);
    case ML_EVENT_LOSS:
        return decode_loss(r, event);
    default:
        return ML_PEER_UNKNOWN;
    }
}

enum ml_status ml_event_decode_extended(
    struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event
) {
    event->kind = (enum ml_event_kind)(op >> 3);
    event->time = 0;
    switch (event->kind) {
    case ML_EVENT_START:
        return decode_start(r, &event->start);
    case ML_EVENT_THREAD:
        return decode_thread(r, &event->thread);
    case ML_EVENT_MODULE:
        return decode_module(r, &event->module);
    case ML_EVENT_STRING:
    case ML_EVENT_TYPE:
    case ML_EVENT_HEAP:
        return decode_name(r, event->kind, &event->name);
    default:
        break;
    }
    if (event->kind == ML_EVENT_NONE || event->kind >= ML_EVENT_EXTENDED_COUNT) {
        return ML_PEER_UNKNOWN;
    }
    const enum ml_status status = ml_take_time(r, state);
    event->time = state->time;
    return status == ML_OK ? decode_timed(r, event) : status;
}
