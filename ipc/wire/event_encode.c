#include "ipc/wire/event.h"

/* The fields' ranges are checked here too, so that every written record is readable. */

static enum ml_status put_time(struct ml_writer *w, struct ml_event_state *state, uint64_t time) {
    if (time < state->time) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, time - state->time);
    state->time = time;
    return ML_OK;
}

static bool block_in_range(const struct ml_event_block *block) {
    return block->address != 0 && block->address < ML_ADDRESS_MAX;
}

static bool alloc_in_range(const struct ml_event_block *block) {
    return block_in_range(block) && block->size_bytes <= ML_SIZE_MAX_BYTES &&
           block->weight_bytes >= block->size_bytes && block->weight_bytes <= ML_SIZE_MAX_BYTES &&
           block->weight_blocks >= 1 && block->weight_blocks <= ML_SIZE_MAX_BYTES &&
           block->node < ML_NODES_MAX && (block->marks & ~ML_BLOCK_SAMPLED) == 0 &&
           (block->marks != 0 ||
            (block->weight_bytes == block->size_bytes && block->weight_blocks == 1));
}

/* The address difference in the unit that ML_UNALIGNED of op announces. */
static void put_block_address(
    struct ml_writer *w, struct ml_event_state *state, int64_t delta, uint64_t address
) {
    ml_writer_zigzag(w, delta % 16 == 0 ? delta / 16 : delta);
    state->address = address;
}

static enum ml_status
encode_alloc(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *event) {
    const struct ml_event_block *block = &event->block;
    if (!alloc_in_range(block)) {
        return ML_BUG_CONTRACT;
    }
    const int64_t daddress = (int64_t)(block->address - state->address);
    const bool typed = block->heap != 0 || block->type != 0;
    const bool sampled = (block->marks & ML_BLOCK_SAMPLED) != 0;
    const bool same_node = block->node == state->node;
    ml_writer_u8(
        w,
        (uint8_t
        )(ML_OP_ALLOC | (daddress % 16 != 0 ? ML_UNALIGNED : 0) |
          (same_node ? ML_ALLOC_SAME_NODE : 0) | (typed ? ML_ALLOC_TYPED : 0) |
          (sampled ? ML_ALLOC_SAMPLED : 0))
    );
    const enum ml_status status = put_time(w, state, event->time);
    put_block_address(w, state, daddress, block->address);
    ml_writer_varint(w, block->size_bytes);
    if (!same_node) {
        ml_writer_zigzag(w, (int64_t)block->node - (int64_t)state->node);
        state->node = block->node;
    }
    if (typed) {
        ml_writer_varint(w, block->heap);
        ml_writer_varint(w, block->type);
    }
    if (sampled) {
        ml_writer_varint(w, block->weight_bytes);
        ml_writer_varint(w, block->weight_blocks);
    }
    return status;
}

/* FREE and RESIZE. */
static enum ml_status
encode_free(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *event) {
    const struct ml_event_block *block = &event->block;
    if (!block_in_range(block) || (block->marks & ~(ML_BLOCK_SKIPPED | ML_BLOCK_UNSURE)) != 0) {
        return ML_BUG_CONTRACT;
    }
    const int64_t daddress = (int64_t)(block->address - state->address);
    const int op = event->kind == ML_EVENT_FREE ? ML_OP_FREE : ML_OP_RESIZE;
    ml_writer_u8(
        w,
        (uint8_t
        )(op | (daddress % 16 != 0 ? ML_UNALIGNED : 0) | (block->heap != 0 ? ML_FREE_HEAP : 0) |
          ((block->marks & ML_BLOCK_SKIPPED) != 0 ? ML_FREE_SKIPPED : 0) |
          ((block->marks & ML_BLOCK_UNSURE) != 0 ? ML_FREE_UNSURE : 0))
    );
    const enum ml_status status = put_time(w, state, event->time);
    put_block_address(w, state, daddress, block->address);
    if (block->heap != 0) {
        ml_writer_varint(w, block->heap);
    }
    return status;
}

static bool node_in_range(const struct ml_event_node *node) {
    return node->id >= 1 && node->id < ML_NODES_MAX && node->parent < node->id &&
           node->frame < ML_FRAME_KIND_COUNT && node->module < ML_MODULES_MAX &&
           node->address < ML_ADDRESS_MAX &&
           (!ml_frame_has_string(node->frame) ||
            (node->string_id >= 1 && node->string_id < ML_STRINGS_MAX));
}

static enum ml_status
encode_node(struct ml_writer *w, struct ml_event_state *state, const struct ml_event_node *node) {
    if (!node_in_range(node)) {
        return ML_BUG_CONTRACT;
    }
    const bool address = node->frame == ML_FRAME_ADDRESS;
    const bool same_module = address && node->module == state->node_module;
    ml_writer_u8(
        w,
        (uint8_t
        )(ML_OP_NODE | (same_module ? ML_NODE_SAME_MODULE : 0) | node->frame << ML_NODE_FRAME_SHIFT)
    );
    ml_writer_zigzag(w, (int64_t)node->id - (int64_t)state->node_id);
    ml_writer_varint(w, node->id - node->parent);
    state->node_id = node->id;
    if (address) {
        if (!same_module) {
            ml_writer_varint(w, node->module);
        }
        ml_writer_zigzag(w, (int64_t)(node->address - state->node_address));
        state->node_module = node->module;
        state->node_address = node->address;
    } else if (ml_frame_has_string(node->frame)) {
        ml_writer_varint(w, node->string_id);
    }
    return ML_OK;
}

static enum ml_status encode_start(struct ml_writer *w, const struct ml_event_start *start) {
    if (start->version != ML_STREAM_VERSION || start->clock >= ML_CLOCK_COUNT ||
        start->stack_mode >= ML_STACK_MODE_COUNT || start->sampling_bytes < 1 ||
        start->sampling_bytes > ML_SIZE_MAX_BYTES) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, start->version);
    ml_writer_varint(w, start->clock);
    ml_writer_varint(w, start->pid);
    ml_writer_varint(w, start->thread_id);
    ml_writer_varint(w, start->ticks);
    ml_writer_varint(w, start->monotonic_ns);
    ml_writer_varint(w, start->sampling_bytes);
    ml_writer_varint(w, start->stack_mode);
    ml_writer_varint(w, start->page_bytes);
    ml_writer_varint(w, start->fork_serial);
    return ML_OK;
}

static enum ml_status encode_thread(struct ml_writer *w, const struct ml_event_thread *thread) {
    if (thread->name_bytes >= ML_THREAD_NAME_MAX_BYTES) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, thread->thread_id);
    ml_writer_blob(w, thread->name, thread->name_bytes);
    return ML_OK;
}

static enum ml_status encode_module(struct ml_writer *w, const struct ml_event_module *module) {
    if (module->id < 1 || module->id >= ML_MODULES_MAX || module->start >= module->end ||
        module->end > ML_ADDRESS_MAX || module->build_id_bytes > ML_BUILD_ID_MAX_BYTES ||
        module->path_bytes > ML_PATH_MAX_BYTES || module->code_address > ML_ADDRESS_MAX ||
        module->code_offset > ML_ADDRESS_MAX) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, module->id);
    ml_writer_varint(w, module->start);
    ml_writer_varint(w, module->end - module->start);
    ml_writer_zigzag(w, module->bias);
    ml_writer_blob(w, module->build_id, module->build_id_bytes);
    ml_writer_blob(w, module->path, module->path_bytes);
    ml_writer_varint(w, module->code_address);
    ml_writer_varint(w, module->code_offset);
    return ML_OK;
}

/* STRING, TYPE, HEAP. */
static enum ml_status
encode_name(struct ml_writer *w, enum ml_event_kind kind, const struct ml_event_name *name) {
    const uint32_t most = kind == ML_EVENT_STRING ? ML_STRINGS_MAX
                          : kind == ML_EVENT_TYPE ? ML_TYPES_MAX
                                                  : ML_HEAPS_MAX;
    if (name->id < 1 || name->id >= most) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, name->id);
    if (kind == ML_EVENT_STRING) {
        if (name->bytes_count > ML_STRING_MAX_BYTES) {
            return ML_BUG_CONTRACT;
        }
        ml_writer_blob(w, name->bytes, name->bytes_count);
        return ML_OK;
    }
    if (name->string_id < 1 || name->string_id >= ML_STRINGS_MAX) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, name->string_id);
    return ML_OK;
}

static enum ml_status encode_mapping(struct ml_writer *w, const struct ml_event_mapping *mapping) {
    if (!ml_event_mapping_is_in_range(mapping)) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, mapping->kind);
    ml_writer_varint(w, mapping->address);
    ml_writer_varint(w, mapping->length_bytes);
    ml_writer_varint(w, mapping->flags);
    ml_writer_varint(w, mapping->node);
    ml_writer_varint(w, mapping->string_id);
    return ML_OK;
}

static enum ml_status
put_in_range(struct ml_writer *w, uint64_t value, uint64_t least, uint64_t most) {
    if (value < least || value > most) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_varint(w, value);
    return ML_OK;
}

/* What stands behind the time of the EXTENDED kinds that have one. */
static enum ml_status encode_timed(struct ml_writer *w, const struct ml_event *event) {
    switch (event->kind) {
    case ML_EVENT_SAMPLING:
        return put_in_range(w, event->sampling_bytes, 1, ML_SIZE_MAX_BYTES);
    case ML_EVENT_FORK:
        return put_in_range(w, event->fork_serial, 1, UINT64_MAX);
    case ML_EVENT_REAPED:
        return put_in_range(w, event->reaped_pid, 1, UINT32_MAX);
    case ML_EVENT_END:
        return put_in_range(w, event->end_kind, 0, ML_END_KIND_COUNT - 1);
    case ML_EVENT_MAPPING:
        return encode_mapping(w, &event->mapping);
    case ML_EVENT_UNLOAD:
        return put_in_range(w, event->unload_module, 1, ML_MODULES_MAX - 1);
    case ML_EVENT_LOSS: {
        const enum ml_status status =
            put_in_range(w, event->loss.reason, 0, ML_LOSS_REASON_COUNT - 1);
        return status == ML_OK ? put_in_range(w, event->loss.count, 1, ML_SIZE_MAX_BYTES) : status;
    }
    default:
        return ML_BUG_CONTRACT;
    }
}

static enum ml_status
encode_extended(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *event) {
    if (event->kind == ML_EVENT_NONE || (unsigned)event->kind >= ML_EVENT_EXTENDED_COUNT) {
        return ML_BUG_CONTRACT;
    }
    ml_writer_u8(w, (uint8_t)((unsigned)event->kind << 3 | ML_OP_EXTENDED));
    switch (event->kind) {
    case ML_EVENT_START:
        return encode_start(w, &event->start);
    case ML_EVENT_THREAD:
        return encode_thread(w, &event->thread);
    case ML_EVENT_MODULE:
        return encode_module(w, &event->module);
    case ML_EVENT_STRING:
    case ML_EVENT_TYPE:
    case ML_EVENT_HEAP:
        return encode_name(w, event->kind, &event->name);
    default:
        break;
    }
    const enum ml_status status = put_time(w, state, event->time);
    return status == ML_OK ? encode_timed(w, event) : status;
}

enum ml_status
ml_event_encode(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *event) {
    struct ml_writer at = *w;
    struct ml_event_state next = *state;
    enum ml_status status = ML_OK;
    switch (event->kind) {
    case ML_EVENT_ALLOC:
        status = encode_alloc(&at, &next, event);
        break;
    case ML_EVENT_FREE:
    case ML_EVENT_RESIZE:
        status = encode_free(&at, &next, event);
        break;
    case ML_EVENT_CANCEL:
        ml_writer_u8(&at, ML_OP_CANCEL);
        status = put_time(&at, &next, event->time);
        break;
    case ML_EVENT_NODE:
        status = encode_node(&at, &next, &event->node);
        break;
    default:
        status = encode_extended(&at, &next, event);
        break;
    }
    if (status == ML_OK && at.overflow) {
        status = ML_BUG_SPACE;
    }
    if (status == ML_OK) {
        *w = at;
        *state = next;
    }
    return status;
}
