#include "ipc/wire/event_decode_internal.h"

/* A record's fields, one behind the other: the first that is wrong ends it, and the others are not
 * read. */
struct fields {
    struct ml_reader *r;
    enum ml_status status;
};

static void take_varint(struct fields *f, uint64_t *out_value) {
    if (f->status == ML_OK) {
        f->status = ml_take_varint(f->r, out_value);
    }
}

static void take_bounded(struct fields *f, uint64_t least, uint64_t most, uint64_t *out_value) {
    if (f->status == ML_OK) {
        f->status = ml_take_bounded(f->r, least, most, out_value);
    }
}

static void take_u32(struct fields *f, uint32_t least, uint32_t most, uint32_t *out_value) {
    if (f->status == ML_OK) {
        f->status = ml_take_u32(f->r, least, most, out_value);
    }
}

static void
take_blob(struct fields *f, size_t max_bytes, const uint8_t **out_bytes, uint32_t *out_count) {
    size_t count = 0;
    if (f->status == ML_OK) {
        f->status = ml_reader_blob(f->r, max_bytes, out_bytes, &count);
    }
    *out_count = (uint32_t)count;
}

static enum ml_status decode_start(struct ml_reader *r, struct ml_event_start *start) {
    struct fields f = {.r = r};
    *start = (struct ml_event_start){.version = 0};
    take_u32(&f, 0, UINT32_MAX, &start->version);
    if (f.status == ML_OK && start->version != ML_STREAM_VERSION) {
        return ML_PEER_VERSION;
    }
    take_u32(&f, 0, ML_CLOCK_COUNT - 1, &start->clock);
    take_u32(&f, 0, UINT32_MAX, &start->pid);
    take_u32(&f, 0, UINT32_MAX, &start->thread_id);
    take_varint(&f, &start->ticks);
    take_varint(&f, &start->monotonic_ns);
    take_bounded(&f, 1, ML_SIZE_MAX_BYTES, &start->sampling_bytes);
    take_u32(&f, 0, ML_STACK_MODE_COUNT - 1, &start->stack_mode);
    take_u32(&f, 0, UINT32_MAX, &start->page_bytes);
    take_varint(&f, &start->fork_serial);
    return f.status;
}

static enum ml_status decode_thread(struct ml_reader *r, struct ml_event_thread *thread) {
    struct fields f = {.r = r};
    *thread = (struct ml_event_thread){.thread_id = 0};
    take_u32(&f, 0, UINT32_MAX, &thread->thread_id);
    take_blob(&f, ML_THREAD_NAME_MAX_BYTES - 1, &thread->name, &thread->name_bytes);
    return f.status;
}

static enum ml_status decode_module(struct ml_reader *r, struct ml_event_module *module) {
    struct fields f = {.r = r};
    uint64_t length = 0;
    *module = (struct ml_event_module){.id = 0};
    take_u32(&f, 1, ML_MODULES_MAX - 1, &module->id);
    take_bounded(&f, 0, ML_ADDRESS_MAX - 1, &module->start);
    take_bounded(&f, 1, ML_ADDRESS_MAX - module->start, &length);
    module->end = module->start + length;
    if (f.status == ML_OK) {
        f.status = ml_take_zigzag(r, &module->bias);
    }
    take_blob(&f, ML_BUILD_ID_MAX_BYTES, &module->build_id, &module->build_id_bytes);
    take_blob(&f, ML_PATH_MAX_BYTES, &module->path, &module->path_bytes);
    take_bounded(&f, 0, ML_ADDRESS_MAX, &module->code_address);
    take_bounded(&f, 0, ML_ADDRESS_MAX, &module->code_offset);
    return f.status;
}

/* STRING, TYPE, HEAP. */
static enum ml_status
decode_name(struct ml_reader *r, enum ml_event_kind kind, struct ml_event_name *name) {
    struct fields f = {.r = r};
    const uint32_t most = kind == ML_EVENT_STRING ? ML_STRINGS_MAX
                          : kind == ML_EVENT_TYPE ? ML_TYPES_MAX
                                                  : ML_HEAPS_MAX;
    *name = (struct ml_event_name){.id = 0};
    take_u32(&f, 1, most - 1, &name->id);
    if (kind == ML_EVENT_STRING) {
        take_blob(&f, ML_STRING_MAX_BYTES, &name->bytes, &name->bytes_count);
    } else {
        take_u32(&f, 1, ML_STRINGS_MAX - 1, &name->string_id);
    }
    return f.status;
}

static enum ml_status decode_mapping(struct ml_reader *r, struct ml_event_mapping *mapping) {
    struct fields f = {.r = r};
    *mapping = (struct ml_event_mapping){.kind = 0};
    take_u32(&f, 0, ML_MAPPING_KIND_COUNT - 1, &mapping->kind);
    take_bounded(&f, 0, ML_ADDRESS_MAX - 1, &mapping->address);
    take_bounded(&f, 0, ML_ADDRESS_MAX - mapping->address, &mapping->length_bytes);
    take_u32(&f, 0, ML_MAPPING_FLAGS, &mapping->flags);
    take_u32(&f, 0, ML_NODES_MAX - 1, &mapping->node);
    take_u32(&f, 0, ML_STRINGS_MAX - 1, &mapping->string_id);
    if (f.status == ML_OK && !ml_event_mapping_is_in_range(mapping)) {
        return ML_PEER_RANGE;
    }
    return f.status;
}

static enum ml_status decode_loss(struct ml_reader *r, struct ml_event *event) {
    struct fields f = {.r = r};
    take_u32(&f, 0, ML_LOSS_REASON_COUNT - 1, &event->loss.reason);
    take_bounded(&f, 1, ML_SIZE_MAX_BYTES, &event->loss.count);
    return f.status;
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
