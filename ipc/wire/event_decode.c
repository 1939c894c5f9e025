#include "ipc/wire/event.h"

#include "ipc/wire/event_decode_internal.h"

/* The sum of an address (or id) below `limit` and a difference in units of `unit`. A difference
 * that is itself out of bounds is refused: it could wrap, and a sum would have many forms. */
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
    enum ml_status status = ml_take_zigzag(r, &delta);
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
    enum ml_status status = ml_take_zigzag(r, &delta);
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
    enum ml_status status = ml_take_bounded(r, 0, ML_HEAPS_MAX - 1, &heap);
    if (status == ML_OK) {
        status = ml_take_bounded(r, 0, ML_TYPES_MAX - 1, &type);
    }
    if (status == ML_OK && heap == 0 && type == 0) {
        status = ML_PEER_FORM;
    }
    block->heap = (uint8_t)heap;
    block->type = (uint16_t)type;
    return status;
}

static enum ml_status take_weights(struct ml_reader *r, struct ml_event_block *block) {
    enum ml_status status =
        ml_take_bounded(r, block->size_bytes, ML_SIZE_MAX_BYTES, &block->weight_bytes);
    if (status == ML_OK) {
        status = ml_take_bounded(r, 1, ML_SIZE_MAX_BYTES, &block->weight_blocks);
    }
    return status;
}

static enum ml_status decode_alloc(
    struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event
) {
    struct ml_event_block *block = &event->block;
    event->kind = ML_EVENT_ALLOC;
    if ((op & ~(7 | ML_UNALIGNED | ML_ALLOC_SAME_NODE | ML_ALLOC_TYPED | ML_ALLOC_SAMPLED)) != 0) {
        return ML_PEER_UNKNOWN;
    }
    enum ml_status status = ml_take_time(r, state);
    if (status == ML_OK) {
        status = take_block_address(r, state, op);
    }
    if (status == ML_OK) {
        status = ml_take_bounded(r, 0, ML_SIZE_MAX_BYTES, &block->size_bytes);
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
    block->marks = (op & ML_ALLOC_SAMPLED) != 0 ? ML_BLOCK_SAMPLED : 0;
    if ((op & ML_ALLOC_TYPED) != 0) {
        status = take_heap_and_type(r, block);
    }
    if (status == ML_OK && (op & ML_ALLOC_SAMPLED) != 0) {
        status = take_weights(r, block);
    }
    return status;
}

/* FREE and RESIZE. */
static enum ml_status
decode_free(struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event) {
    event->kind = (op & 7) == ML_OP_FREE ? ML_EVENT_FREE : ML_EVENT_RESIZE;
    if ((op & ~(7 | ML_UNALIGNED | ML_FREE_HEAP | ML_FREE_SKIPPED | ML_FREE_UNSURE)) != 0) {
        return ML_PEER_UNKNOWN;
    }
    enum ml_status status = ml_take_time(r, state);
    if (status == ML_OK) {
        status = take_block_address(r, state, op);
    }
    uint64_t heap = 0;
    if (status == ML_OK && (op & ML_FREE_HEAP) != 0) {
        status = ml_take_bounded(r, 0, ML_HEAPS_MAX - 1, &heap);
        if (status == ML_OK && heap == 0) {
            status = ML_PEER_FORM;
        }
    }
    event->time = state->time;
    event->block = (struct ml_event_block){
        .address = state->address,
        .heap = (uint8_t)heap,
        .marks = (uint8_t
        )(((op & ML_FREE_SKIPPED) != 0 ? ML_BLOCK_SKIPPED : 0) |
          ((op & ML_FREE_UNSURE) != 0 ? ML_BLOCK_UNSURE : 0)),
    };
    return status;
}

static enum ml_status decode_cancel(
    struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event
) {
    event->kind = ML_EVENT_CANCEL;
    if (op != ML_OP_CANCEL) {
        return ML_PEER_UNKNOWN;
    }
    const enum ml_status status = ml_take_time(r, state);
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
        status = ml_take_u32(r, 0, ML_MODULES_MAX - 1, &node->module);
        if (status == ML_OK && node->module == state->node_module) {
            status = ML_PEER_FORM;
        }
    }
    int64_t delta = 0;
    if (status == ML_OK) {
        status = ml_take_zigzag(r, &delta);
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
    enum ml_status status = ml_take_zigzag(r, &delta);
    if (status == ML_OK) {
        status = add_delta(state->node_id, delta, 1, ML_NODES_MAX, &id);
    }
    if (status == ML_OK && id == 0) {
        status = ML_PEER_RANGE;
    }
    if (status == ML_OK) {
        status = ml_take_u32(r, 1, (uint32_t)id, &below);
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
    if (ml_frame_has_string(node->frame)) {
        return ml_take_u32(r, 1, ML_STRINGS_MAX - 1, &node->string_id);
    }
    return ML_OK;
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
        status = ml_event_decode_extended(&at, &next, op, &event);
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
