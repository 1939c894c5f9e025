/* The hot records, encoded inline. Room: ipc (:wire). Context: the malloc path.
 *
 * One rule: the caller has ML_EVENT_HOT_MAX_BYTES of room; nothing is checked here. The format is
 * ipc/wire/event.h's; tests compare every function with ml_event_encode(). */
#ifndef MEMLOG_IPC_WIRE_EVENT_PUT_H
#define MEMLOG_IPC_WIRE_EVENT_PUT_H

#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/writer.h"

/* The longest of these records: op, time, address, size, node, two weights, each a full varint. One
 * with heap and type is no longer: sizes and weights are below 2^49. */
enum { ML_EVENT_HOT_MAX_BYTES = 1 + 6 * ML_VARINT_MAX_BYTES };

/* Append the address's difference; returns the flag that goes into op. */
static inline uint8_t *
ml_put_address(uint8_t *pos, struct ml_event_state *state, uint64_t address, uint8_t *op) {
    const int64_t delta = (int64_t)(address - state->address);
    state->address = address;
    if (__builtin_expect((delta & 15) == 0, 1)) {
        return ml_put_varint(pos, ml_zigzag(delta >> 4));
    }
    *op |= ML_UNALIGNED;
    return ml_put_varint(pos, ml_zigzag(delta));
}

/* The time, behind a record's op. */
static inline uint8_t *ml_put_time(uint8_t *pos, struct ml_event_state *state, uint64_t time) {
    pos = ml_put_varint_small(pos, time - state->time);
    state->time = time;
    return pos;
}

/* The same for the time of the record before. */
static inline uint8_t *ml_put_time_again(uint8_t *pos) {
    *pos = 0;
    return pos + 1;
}

/* The rest of an ALLOC of heap 0, type 0, unweighted, from `pos` on, where its time ends; `op` is
 * where it begins. */
static inline uint8_t *ml_put_alloc_rest(
    uint8_t *op,
    uint8_t *pos,
    struct ml_event_state *state,
    uint64_t address,
    uint64_t size_bytes,
    uint32_t node
) {
    uint8_t flags = ML_OP_ALLOC;
    pos = ml_put_address(pos, state, address, &flags);
    pos = ml_put_varint_small(pos, size_bytes);
    if (node == state->node) {
        flags |= ML_ALLOC_SAME_NODE;
    } else {
        pos = ml_put_varint(pos, ml_zigzag((int64_t)node - (int64_t)state->node));
        state->node = node;
    }
    *op = flags;
    return pos;
}

/* ALLOC of a sampled block that stands for weight_blocks of them. */
static inline uint8_t *ml_put_alloc_sampled(
    uint8_t *pos,
    struct ml_event_state *state,
    uint64_t time,
    uint64_t address,
    uint64_t size_bytes,
    uint32_t node,
    uint64_t weight_bytes,
    uint64_t weight_blocks
) {
    uint8_t *op = pos;
    pos = ml_put_time(pos + 1, state, time);
    pos = ml_put_alloc_rest(op, pos, state, address, size_bytes, node);
    *op |= ML_ALLOC_SAMPLED;
    pos = ml_put_varint(pos, weight_bytes);
    return ml_put_varint(pos, weight_blocks);
}

/* ALLOC of a heap of the program's own (1 ..), of a type (0: none). weight_blocks 0: it is not
 * sampled. */
static inline __attribute__((always_inline)) uint8_t *ml_put_alloc_typed(
    uint8_t *op, uint8_t *pos, struct ml_event_state *state, const struct ml_event_block *block
) {
    pos = ml_put_alloc_rest(op, pos, state, block->address, block->size_bytes, block->node);
    *op |= ML_ALLOC_TYPED;
    pos = ml_put_varint_byte(pos, block->heap);
    pos = ml_put_varint_byte(pos, block->type);
    if (block->weight_blocks == 0) {
        return pos;
    }
    *op |= ML_ALLOC_SAMPLED;
    pos = ml_put_varint(pos, block->weight_bytes);
    return ml_put_varint(pos, block->weight_blocks);
}

/* The rest of a FREE or, as `op`, RESIZE, with ML_FREE_SKIPPED and ML_FREE_UNSURE where they hold;
 * heap 0. As above. */
static inline uint8_t *ml_put_free_rest(
    uint8_t *op_byte, uint8_t *pos, struct ml_event_state *state, uint64_t address, unsigned op
) {
    uint8_t flags = (uint8_t)op;
    pos = ml_put_address(pos, state, address, &flags);
    *op_byte = flags;
    return pos;
}

/* The rest of a FREE of a heap of the program's own (1 ..). As above. */
static inline uint8_t *ml_put_free_of_heap(
    uint8_t *op_byte,
    uint8_t *pos,
    struct ml_event_state *state,
    uint64_t address,
    unsigned op,
    uint32_t heap
) {
    pos = ml_put_free_rest(op_byte, pos, state, address, op);
    *op_byte |= ML_FREE_HEAP;
    return ml_put_varint_byte(pos, heap);
}

/* CANCEL. */
static inline uint8_t *ml_put_cancel(uint8_t *pos, struct ml_event_state *state, uint64_t time) {
    *pos = ML_OP_CANCEL;
    return ml_put_time(pos + 1, state, time);
}

/* NODE of an address frame. */
static inline uint8_t *ml_put_node_address(
    uint8_t *pos,
    struct ml_event_state *state,
    uint32_t id,
    uint32_t parent,
    uint64_t address,
    uint32_t module
) {
    uint8_t *op = pos++;
    uint8_t flags = ML_OP_NODE | ML_FRAME_ADDRESS << ML_NODE_FRAME_SHIFT;
    pos = ml_put_varint(pos, ml_zigzag((int64_t)id - (int64_t)state->node_id));
    state->node_id = id;
    pos = ml_put_varint(pos, id - parent);
    if (module == state->node_module) {
        flags |= ML_NODE_SAME_MODULE;
    } else {
        pos = ml_put_varint(pos, module);
        state->node_module = module;
    }
    pos = ml_put_varint(pos, ml_zigzag((int64_t)(address - state->node_address)));
    state->node_address = address;
    *op = flags;
    return pos;
}

#endif
