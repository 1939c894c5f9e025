#include "ipc/event.h"

/* Record fields are nearly always one byte long: that case in line, the rest by the reader. */
static inline enum ml_status take_varint(struct ml_reader *r, uint64_t *out_value) {
    if (r->pos != r->end && *r->pos < 0x80) {
        *out_value = *r->pos++;
        return ML_OK;
    }
    return ml_reader_varint(r, out_value);
}

static inline enum ml_status take_zigzag(struct ml_reader *r, int64_t *out_value) {
    uint64_t raw = 0;
    const enum ml_status status = take_varint(r, &raw);
    *out_value = (int64_t)((raw >> 1) ^ (0 - (raw & 1)));
    return status;
}

/* A varint of [least, most]. */
static enum ml_status
take_bounded(struct ml_reader *r, uint64_t least, uint64_t most, uint64_t *out_value) {
    uint64_t value = 0;
    const enum ml_status status = take_varint(r, &value);
    if (status != ML_OK) {
        return status;
    }
    if (value < least || value > most) {
        return ML_PEER_RANGE;
    }
    *out_value = value;
    return ML_OK;
}

static enum ml_status
take_u32(struct ml_reader *r, uint32_t least, uint32_t most, uint32_t *out_value) {
    uint64_t value = 0;
    const enum ml_status status = take_bounded(r, least, most, &value);
    *out_value = (uint32_t)value;
    return status;
}

static inline enum ml_status take_time(struct ml_reader *r, struct ml_event_state *state) {
    uint64_t delta = 0;
    const enum ml_status status = take_varint(r, &delta);
    if (status != ML_OK) {
        return status;
    }
    if (delta > UINT64_MAX - state->time) {
        return ML_PEER_RANGE;
    }
    state->time += delta;
    return ML_OK;
}

/* The sum of an address (or id) below `limit` and a difference in units of `unit`. A difference
 * that is itself out of bounds could wrap into them: refused, or a sum would have many forms. */
static inline enum ml_status
add_delta(uint64_t base, int64_t delta, int64_t unit, uint64_t limit, uint64_t *out_sum) {
    const int64_t bound = (int64_t)limit / unit;
    if (delta < -bound || delta > bound) {
        return ML_PEER_RANGE;
    }
    const int64_t sum = (int64_t)base + delta * unit;
    if (sum < 0 || (uint64_t)sum >= limit) {
        return ML_PEER_RANGE;
    }
    *out_sum = (uint64_t)sum;
    return ML_OK;
}

static inline enum ml_status
take_block_address(struct ml_reader *r, struct ml_event_state *state, uint8_t op) {
    int64_t delta = 0;
    enum ml_status status = take_zigzag(r, &delta);
    if (status != ML_OK) {
        return status;
    }
    if ((op & ML_UNALIGNED) == 0) {
        status = add_delta(state->address, delta, 16, ML_ADDRESS_MAX, &state->address);
    } else if (delta % 16 == 0) {
        return ML_PEER_FORM;
    } else {
        status = add_delta(state->address, delta, 1, ML_ADDRESS_MAX, &state->address);
    }
    return status == ML_OK && state->address == 0 ? ML_PEER_RANGE : status;
}

static enum ml_status
take_alloc_node(struct ml_reader *r, struct ml_event_state *state, uint8_t op) {
    if ((op & ML_ALLOC_SAME_NODE) != 0) {
        return ML_OK;
    }
    int64_t delta = 0;
    uint64_t node = 0;
    enum ml_status status = take_zigzag(r, &delta);
    if (status == ML_OK && delta == 0) {
        status = ML_PEER_FORM;
    }
    if (status == ML_OK) {
        status = add_delta(state->node, delta, 1, ML_NODES_MAX, &node);
    }
    if (status == ML_OK) {
        state->node = (uint32_t)node;
    }
    return status;
}

static enum ml_status take_heap_and_type(struct ml_reader *r, struct ml_event_block *block) {
    uint64_t heap = 0;
    uint64_t type = 0;
    enum ml_status status = take_bounded(r, 0, ML_HEAPS_MAX - 1, &heap);
    if (status == ML_OK) {
        status = take_bounded(r, 0, ML_TYPES_MAX - 1, &type);
    }
    if (status == ML_OK && heap == 0 && type == 0) {
        status = ML_PEER_FORM;
    }
    block->heap = (uint16_t)heap;
    block->type = (uint16_t)type;
    return status;
}

static enum ml_status take_weights(struct ml_reader *r, struct ml_event_block *block) {
    enum ml_status status =
        take_bounded(r, block->size_bytes, ML_SIZE_MAX_BYTES, &block->weight_bytes);
    if (status == ML_OK) {
        status = take_bounded(r, 1, ML_SIZE_MAX_BYTES, &block->weight_blocks);
    }
    if (status == ML_OK && block->weight_bytes == block->size_bytes && block->weight_blocks == 1) {
        status = ML_PEER_FORM;
    }
    return status;
}

static enum ml_status decode_alloc(
    struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event
) {
    struct ml_event_block *block = &event->block;
    event->kind = ML_EVENT_ALLOC;
    if ((op & ~(7 | ML_UNALIGNED | ML_ALLOC_SAME_NODE | ML_ALLOC_TYPED | ML_ALLOC_WEIGHTED)) != 0) {
        return ML_PEER_UNKNOWN;
    }
    enum ml_status status = take_time(r, state);
    if (status == ML_OK) {
        status = take_block_address(r, state, op);
    }
    if (status == ML_OK) {
        status = take_bounded(r, 0, ML_SIZE_MAX_BYTES, &block->size_bytes);
    }
    if (status == ML_OK) {
        status = take_alloc_node(r, state, op);
    }
    if (status != ML_OK) {
        return status;
    }
    event->time = state->time;
    block->address = state->address;
    block->node = state->node;
    block->weight_bytes = block->size_bytes;
    block->weight_blocks = 1;
    block->heap = 0;
    block->type = 0;
    if ((op & ML_ALLOC_TYPED) != 0) {
        status = take_heap_and_type(r, block);
    }
    if (status == ML_OK && (op & ML_ALLOC_WEIGHTED) != 0) {
        status = take_weights(r, block);
    }
    return status;
}

/* FREE and RESIZE. */
static enum ml_status
decode_free(struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event) {
    event->kind = (op & 7) == ML_OP_FREE ? ML_EVENT_FREE : ML_EVENT_RESIZE;
    if ((op & ~(7 | ML_UNALIGNED | ML_FREE_HEAP)) != 0) {
        return ML_PEER_UNKNOWN;
    }
    enum ml_status status = take_time(r, state);
    if (status == ML_OK) {
        status = take_block_address(r, state, op);
    }
    uint64_t heap = 0;
    if (status == ML_OK && (op & ML_FREE_HEAP) != 0) {
        status = take_bounded(r, 0, ML_HEAPS_MAX - 1, &heap);
        if (status == ML_OK && heap == 0) {
            status = ML_PEER_FORM;
        }
    }
    event->time = state->time;
    event->block = (struct ml_event_block){.address = state->address, .heap = (uint16_t)heap};
    return status;
}

static enum ml_status decode_cancel(
    struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event
) {
    event->kind = ML_EVENT_CANCEL;
    if (op != ML_OP_CANCEL) {
        return ML_PEER_UNKNOWN;
    }
    const enum ml_status status = take_time(r, state);
    event->time = state->time;
    event->block = (struct ml_event_block){.address = 0};
    return status;
}

static enum ml_status take_frame_address(
    struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event_node *node
) {
    enum ml_status status = ML_OK;
    node->module = state->node_module;
    if ((op & ML_NODE_SAME_MODULE) == 0) {
        status = take_u32(r, 0, ML_MODULES_MAX - 1, &node->module);
        if (status == ML_OK && node->module == state->node_module) {
            status = ML_PEER_FORM;
        }
    }
    int64_t delta = 0;
    if (status == ML_OK) {
        status = take_zigzag(r, &delta);
    }
    if (status == ML_OK) {
        status = add_delta(state->node_address, delta, 1, ML_ADDRESS_MAX, &node->address);
    }
    if (status == ML_OK) {
        state->node_module = node->module;
        state->node_address = node->address;
    }
    return status;
}

static enum ml_status
decode_node(struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event) {
    struct ml_event_node *node = &event->node;
    event->kind = ML_EVENT_NODE;
    event->time = 0;
    *node = (struct ml_event_node){.frame = (uint32_t)op >> ML_NODE_FRAME_SHIFT};
    const bool same_module = (op & ML_NODE_SAME_MODULE) != 0;
    if (node->frame >= ML_FRAME_KIND_COUNT || (same_module && node->frame != ML_FRAME_ADDRESS)) {
        return ML_PEER_UNKNOWN;
    }
    int64_t delta = 0;
    uint64_t id = 0;
    uint32_t below = 0;
    enum ml_status status = take_zigzag(r, &delta);
    if (status == ML_OK) {
        status = add_delta(state->node_id, delta, 1, ML_NODES_MAX, &id);
    }
    if (status == ML_OK && id == 0) {
        status = ML_PEER_RANGE;
    }
    if (status == ML_OK) {
        status = take_u32(r, 1, (uint32_t)id, &below);
    }
    if (status != ML_OK) {
        return status;
    }
    node->id = (uint32_t)id;
    node->parent = node->id - below;
    state->node_id = node->id;
    if (node->frame == ML_FRAME_ADDRESS) {
        return take_frame_address(r, state, op, node);
    }
    if (node->frame == ML_FRAME_THREAD || node->frame == ML_FRAME_SCOPE) {
        return take_u32(r, 1, ML_STRINGS_MAX - 1, &node->string_id);
    }
    return ML_OK;
}

static enum ml_status decode_start(struct ml_reader *r, struct ml_event_start *start) {
    *start = (struct ml_event_start){.version = 0};
    enum ml_status status = take_u32(r, 0, UINT32_MAX, &start->version);
    if (status == ML_OK && start->version != ML_STREAM_VERSION) {
        status = ML_PEER_VERSION;
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, ML_CLOCK_COUNT - 1, &start->clock);
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, UINT32_MAX, &start->pid);
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, UINT32_MAX, &start->thread_id);
    }
    if (status == ML_OK) {
        status = take_varint(r, &start->ticks);
    }
    if (status == ML_OK) {
        status = take_varint(r, &start->monotonic_ns);
    }
    if (status == ML_OK) {
        status = take_bounded(r, 1, ML_SIZE_MAX_BYTES, &start->sampling_bytes);
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, ML_STACK_MODE_COUNT - 1, &start->stack_mode);
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, UINT32_MAX, &start->page_bytes);
    }
    if (status == ML_OK) {
        status = take_varint(r, &start->fork_serial);
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
    enum ml_status status = take_u32(r, 0, UINT32_MAX, &thread->thread_id);
    if (status == ML_OK) {
        status = take_blob(r, ML_THREAD_NAME_MAX_BYTES - 1, &thread->name, &thread->name_bytes);
    }
    return status;
}

static enum ml_status decode_module(struct ml_reader *r, struct ml_event_module *module) {
    *module = (struct ml_event_module){.id = 0};
    uint64_t length = 0;
    enum ml_status status = take_u32(r, 1, ML_MODULES_MAX - 1, &module->id);
    if (status == ML_OK) {
        status = take_bounded(r, 0, ML_ADDRESS_MAX - 1, &module->start);
    }
    if (status == ML_OK) {
        status = take_bounded(r, 1, ML_ADDRESS_MAX - module->start, &length);
    }
    if (status == ML_OK) {
        module->end = module->start + length;
        status = take_zigzag(r, &module->bias);
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
    enum ml_status status = take_u32(r, 1, most - 1, &name->id);
    if (status != ML_OK) {
        return status;
    }
    if (kind == ML_EVENT_STRING) {
        return take_blob(r, ML_STRING_MAX_BYTES, &name->bytes, &name->bytes_count);
    }
    return take_u32(r, 1, ML_STRINGS_MAX - 1, &name->string_id);
}

static enum ml_status decode_mapping(struct ml_reader *r, struct ml_event_mapping *mapping) {
    *mapping = (struct ml_event_mapping){.kind = 0};
    enum ml_status status = take_u32(r, 0, ML_MAPPING_KIND_COUNT - 1, &mapping->kind);
    uint64_t *const sizes[] = {
        &mapping->address,
        &mapping->length_bytes,
        &mapping->old_address,
        &mapping->old_length_bytes};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && status == ML_OK; i++) {
        status = take_bounded(r, 0, ML_ADDRESS_MAX, sizes[i]);
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, UINT32_MAX, &mapping->protection);
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, UINT32_MAX, &mapping->flags);
    }
    if (status == ML_OK) {
        status = take_u32(r, 0, ML_NODES_MAX - 1, &mapping->node);
    }
    return status;
}

static enum ml_status decode_loss(struct ml_reader *r, struct ml_event *event) {
    enum ml_status status = take_u32(r, 0, ML_LOSS_REASON_COUNT - 1, &event->loss.reason);
    if (status == ML_OK) {
        status = take_bounded(r, 1, ML_SIZE_MAX_BYTES, &event->loss.count);
    }
    return status;
}

/* What stands behind the time of the EXTENDED kinds that have one. */
static enum ml_status decode_timed(struct ml_reader *r, struct ml_event *event) {
    switch (event->kind) {
    case ML_EVENT_SAMPLING:
        return take_bounded(r, 1, ML_SIZE_MAX_BYTES, &event->sampling_bytes);
    case ML_EVENT_FORK:
        return take_bounded(r, 1, UINT64_MAX, &event->fork_serial);
    case ML_EVENT_REAPED:
        return take_u32(r, 1, UINT32_MAX, &event->reaped_pid);
    case ML_EVENT_END:
        return take_u32(r, 0, ML_END_KIND_COUNT - 1, &event->end_kind);
    case ML_EVENT_MAPPING:
        return decode_mapping(r, &event->mapping);
    case ML_EVENT_UNLOAD:
        return take_u32(r, 1, ML_MODULES_MAX - 1, &event->unload_module);
    case ML_EVENT_LOSS:
        return decode_loss(r, event);
    default:
        return ML_PEER_UNKNOWN;
    }
}

static enum ml_status decode_extended(
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
    const enum ml_status status = take_time(r, state);
    event->time = state->time;
    return status == ML_OK ? decode_timed(r, event) : status;
}

enum ml_status
ml_event_decode(struct ml_reader *r, struct ml_event_state *state, struct ml_event *out_event) {
    struct ml_reader at = *r;
    struct ml_event_state next = *state;
    struct ml_event event;
    if (at.pos == at.end) {
        return ML_PEER_SHORT;
    }
    const uint8_t op = *at.pos++;
    enum ml_status status = ML_PEER_UNKNOWN;
    switch (op & 7) {
    case ML_OP_ALLOC:
        status = decode_alloc(&at, &next, op, &event);
        break;
    case ML_OP_FREE:
    case ML_OP_RESIZE:
        status = decode_free(&at, &next, op, &event);
        break;
    case ML_OP_CANCEL:
        status = decode_cancel(&at, &next, op, &event);
        break;
    case ML_OP_NODE:
        status = decode_node(&at, &next, op, &event);
        break;
    case ML_OP_EXTENDED:
        status = decode_extended(&at, &next, op, &event);
        break;
    default:
        break;
    }
    if (status == ML_OK) {
        *r = at;
        *state = next;
        *out_event = event;
    }
    return status;
}
