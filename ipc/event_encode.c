#include "ipc/event.h"

/* What the decoder would refuse is refused here, by the decoder: a record is encoded, then read
 * back. The hot path has its own encoder (ipc/event_put.h); here one truth is worth more than
 * speed. */

static void put_time(struct ml_writer *w, struct ml_event_state *state, uint64_t time) {
    ml_writer_varint(w, time - state->time);
    state->time = time;
}

static uint8_t put_address(struct ml_writer *w, struct ml_event_state *state, uint64_t address) {
    const int64_t delta = (int64_t)(address - state->address);
    state->address = address;
    if ((delta & 15) == 0) {
        ml_writer_zigzag(w, delta / 16);
        return 0;
    }
    ml_writer_zigzag(w, delta);
    return ML_UNALIGNED;
}

/* The op byte is known only behind its fields; it is put in front afterwards. */
static void
put_block(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *e, uint8_t op) {
    uint8_t *const op_at = w->pos;
    const struct ml_event_block *block = &e->block;
    ml_writer_u8(w, op);
    put_time(w, state, e->time);
    op |= put_address(w, state, block->address);
    if (e->kind == ML_EVENT_ALLOC) {
        ml_writer_varint(w, block->size_bytes);
        if (block->node == state->node) {
            op |= ML_ALLOC_SAME_NODE;
        } else {
            ml_writer_zigzag(w, (int64_t)block->node - (int64_t)state->node);
            state->node = block->node;
        }
        if (block->heap != 0 || block->type != 0) {
            op |= ML_ALLOC_TYPED;
            ml_writer_varint(w, block->heap);
            ml_writer_varint(w, block->type);
        }
        if (block->weight_bytes != block->size_bytes || block->weight_blocks != 1) {
            op |= ML_ALLOC_WEIGHTED;
            ml_writer_varint(w, block->weight_bytes);
            ml_writer_varint(w, block->weight_blocks);
        }
    } else if (block->heap != 0) {
        op |= ML_FREE_HEAP;
        ml_writer_varint(w, block->heap);
    }
    if (op_at < w->end) {
        *op_at = op;
    }
}

static void
put_node(struct ml_writer *w, struct ml_event_state *state, const struct ml_event_node *node) {
    uint8_t op = (uint8_t)(ML_OP_NODE | node->frame << ML_NODE_FRAME_SHIFT);
    const bool is_address = node->frame == ML_FRAME_ADDRESS;
    const bool same_module = is_address && node->module == state->node_module;
    ml_writer_u8(w, same_module ? op | ML_NODE_SAME_MODULE : op);
    ml_writer_zigzag(w, (int64_t)node->id - (int64_t)state->node_id);
    state->node_id = node->id;
    ml_writer_varint(w, node->id - node->parent);
    if (is_address) {
        if (!same_module) {
            ml_writer_varint(w, node->module);
            state->node_module = node->module;
        }
        ml_writer_zigzag(w, (int64_t)(node->address - state->node_address));
        state->node_address = node->address;
    } else if (node->frame == ML_FRAME_THREAD || node->frame == ML_FRAME_SCOPE) {
        ml_writer_varint(w, node->string_id);
    }
}

static void put_start(struct ml_writer *w, const struct ml_event_start *start) {
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
}

static void put_module(struct ml_writer *w, const struct ml_event_module *module) {
    ml_writer_varint(w, module->id);
    ml_writer_varint(w, module->start);
    ml_writer_varint(w, module->end - module->start);
    ml_writer_zigzag(w, module->bias);
    ml_writer_blob(w, module->build_id, module->build_id_bytes);
    ml_writer_blob(w, module->path, module->path_bytes);
}

static void put_mapping(struct ml_writer *w, const struct ml_event_mapping *mapping) {
    ml_writer_varint(w, mapping->kind);
    ml_writer_varint(w, mapping->address);
    ml_writer_varint(w, mapping->length_bytes);
    ml_writer_varint(w, mapping->old_address);
    ml_writer_varint(w, mapping->old_length_bytes);
    ml_writer_varint(w, mapping->protection);
    ml_writer_varint(w, mapping->flags);
    ml_writer_varint(w, mapping->node);
}

static enum ml_status
put_extended(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *e) {
    if (e->kind >= ML_EVENT_SAMPLING && e->kind < ML_EVENT_EXTENDED_COUNT) {
        put_time(w, state, e->time);
    }
    switch (e->kind) {
    case ML_EVENT_START:
        put_start(w, &e->start);
        return ML_OK;
    case ML_EVENT_THREAD:
        ml_writer_varint(w, e->thread.thread_id);
        ml_writer_blob(w, e->thread.name, e->thread.name_bytes);
        return ML_OK;
    case ML_EVENT_MODULE:
        put_module(w, &e->module);
        return ML_OK;
    case ML_EVENT_STRING:
        ml_writer_varint(w, e->name.id);
        ml_writer_blob(w, e->name.bytes, e->name.bytes_count);
        return ML_OK;
    case ML_EVENT_TYPE:
    case ML_EVENT_HEAP:
        ml_writer_varint(w, e->name.id);
        ml_writer_varint(w, e->name.string_id);
        return ML_OK;
    case ML_EVENT_SAMPLING:
        ml_writer_varint(w, e->sampling_bytes);
        return ML_OK;
    case ML_EVENT_FORK:
        ml_writer_varint(w, e->fork_serial);
        return ML_OK;
    case ML_EVENT_REAPED:
        ml_writer_varint(w, e->reaped_pid);
        return ML_OK;
    case ML_EVENT_END:
        ml_writer_varint(w, e->end_kind);
        return ML_OK;
    case ML_EVENT_MAPPING:
        put_mapping(w, &e->mapping);
        return ML_OK;
    case ML_EVENT_UNLOAD:
        ml_writer_varint(w, e->unload_module);
        return ML_OK;
    case ML_EVENT_LOSS:
        ml_writer_varint(w, e->loss.reason);
        ml_writer_varint(w, e->loss.count);
        return ML_OK;
    default:
        return ML_BUG_CONTRACT;
    }
}

static enum ml_status
put(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *e) {
    switch (e->kind) {
    case ML_EVENT_ALLOC:
        put_block(w, state, e, ML_OP_ALLOC);
        return ML_OK;
    case ML_EVENT_FREE:
        put_block(w, state, e, ML_OP_FREE);
        return ML_OK;
    case ML_EVENT_RESIZE:
        put_block(w, state, e, ML_OP_RESIZE);
        return ML_OK;
    case ML_EVENT_CANCEL:
        ml_writer_u8(w, ML_OP_CANCEL);
        put_time(w, state, e->time);
        return ML_OK;
    case ML_EVENT_NODE:
        put_node(w, state, &e->node);
        return ML_OK;
    default:
        ml_writer_u8(w, (uint8_t)(e->kind << 3));
        return put_extended(w, state, e);
    }
}

enum ml_status
ml_event_encode(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *event) {
    struct ml_writer out = *w;
    struct ml_event_state next = *state;
    struct ml_event_state checked = *state;
    struct ml_event back;
    enum ml_status status = put(&out, &next, event);
    if (status == ML_OK && out.overflow) {
        status = ML_BUG_SPACE;
    }
    if (status == ML_OK) {
        struct ml_reader r = ml_reader_over(w->pos, (size_t)(out.pos - w->pos));
        /* A difference that wraps, or a field out of range, does not come back as what was meant.
         */
        if (ml_event_decode(&r, &checked, &back) != ML_OK || ml_reader_left(&r) != 0 ||
            back.kind != event->kind || checked.time != next.time ||
            checked.node_id != next.node_id || checked.address != next.address) {
            status = ML_BUG_CONTRACT;
        }
    }
    if (status != ML_OK) {
        return status;
    }
    *w = out;
    *state = next;
    return ML_OK;
}

void ml_frame_header_write(uint8_t *out, const struct ml_frame_header *header) {
    struct ml_writer w = ml_writer_into(out, ML_FRAME_HEADER_BYTES);
    ml_writer_u64(&w, header->chunk_number << 16 | header->end_bytes);
    ml_writer_u16(&w, header->lane);
    ml_writer_u16(&w, header->start_bytes);
    ml_writer_u32(&w, header->thread_id);
}
