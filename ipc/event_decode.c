#include "ipc/event.h"

/* A reader with a memory: after the first error every further field reads as 0, and that error
 * stays. */
struct cursor {
    struct ml_reader r;
    enum ml_status status;
};

static void fail(struct cursor *c, enum ml_status status) {
    if (c->status == ML_OK) {
        c->status = status;
    }
}

/* A varint of at most `max`. */
static uint64_t number(struct cursor *c, uint64_t max) {
    uint64_t value = 0;
    if (c->status != ML_OK) {
        return 0;
    }
    c->status = ml_reader_varint(&c->r, &value);
    if (c->status == ML_OK && value > max) {
        c->status = ML_PEER_RANGE;
    }
    return c->status == ML_OK ? value : 0;
}

static int64_t signed_number(struct cursor *c) {
    int64_t value = 0;
    if (c->status == ML_OK) {
        c->status = ml_reader_zigzag(&c->r, &value);
    }
    return c->status == ML_OK ? value : 0;
}

/* A number from min (1: "not nothing") to max. */
static uint64_t number_from(struct cursor *c, uint64_t min, uint64_t max) {
    const uint64_t value = number(c, max);
    if (c->status == ML_OK && value < min) {
        fail(c, ML_PEER_RANGE);
    }
    return value;
}

static uint32_t blob(struct cursor *c, size_t max_bytes, const uint8_t **out_bytes) {
    size_t count_bytes = 0;
    if (c->status == ML_OK) {
        c->status = ml_reader_blob(&c->r, max_bytes, out_bytes, &count_bytes);
    }
    return (uint32_t)count_bytes;
}

/* `base` moved by a signed difference; the result lies in [min, max]. */
static uint64_t moved(struct cursor *c, uint64_t base, int64_t by, uint64_t min, uint64_t max) {
    uint64_t value = 0;
    if (c->status != ML_OK) {
        return 0;
    }
    const bool wraps = by < 0 ? __builtin_sub_overflow(base, (uint64_t)0 - (uint64_t)by, &value)
                              : __builtin_add_overflow(base, (uint64_t)by, &value);
    if (wraps || value < min || value > max) {
        fail(c, ML_PEER_RANGE);
        return 0;
    }
    return value;
}

static uint64_t time_field(struct cursor *c, struct ml_event_state *state) {
    uint64_t time = 0;
    const uint64_t delta = number(c, UINT64_MAX);
    if (__builtin_add_overflow(state->time, delta, &time)) {
        fail(c, ML_PEER_RANGE);
    }
    state->time = time;
    return time;
}

static uint64_t address_field(struct cursor *c, struct ml_event_state *state, uint8_t op) {
    int64_t delta = signed_number(c);
    if ((op & ML_UNALIGNED) == 0) {
        if (__builtin_mul_overflow(delta, (int64_t)16, &delta)) {
            fail(c, ML_PEER_RANGE);
        }
    } else if (c->status == ML_OK && (delta & 15) == 0) {
        fail(c, ML_PEER_FORM);
    }
    state->address = moved(c, state->address, delta, 1, ML_ADDRESS_MAX - 1);
    return state->address;
}

static void
decode_alloc(struct cursor *c, struct ml_event_state *state, uint8_t op, struct ml_event *e) {
    struct ml_event_block *block = &e->block;
    if ((op & ~(uint8_t)(7 | ML_UNALIGNED | ML_ALLOC_SAME_NODE | ML_ALLOC_TYPED | ML_ALLOC_WEIGHTED)
        ) != 0) {
        fail(c, ML_PEER_UNKNOWN);
    }
    e->kind = ML_EVENT_ALLOC;
    e->time = time_field(c, state);
    block->address = address_field(c, state, op);
    block->size_bytes = number(c, ML_SIZE_MAX_BYTES);
    if ((op & ML_ALLOC_SAME_NODE) == 0) {
        const int64_t delta = signed_number(c);
        if (c->status == ML_OK && delta == 0) {
            fail(c, ML_PEER_FORM);
        }
        state->node = (uint32_t)moved(c, state->node, delta, 0, ML_NODES_MAX - 1);
    }
    block->node = state->node;
    if ((op & ML_ALLOC_TYPED) != 0) {
        block->heap = (uint16_t)number(c, ML_HEAPS_MAX - 1);
        block->type = (uint16_t)number(c, ML_TYPES_MAX - 1);
        if (c->status == ML_OK && block->heap == 0 && block->type == 0) {
            fail(c, ML_PEER_FORM);
        }
    }
    block->weight_bytes = block->size_bytes;
    block->weight_blocks = 1;
    if ((op & ML_ALLOC_WEIGHTED) != 0) {
        block->weight_bytes = number(c, ML_SIZE_MAX_BYTES);
        block->weight_blocks = number(c, ML_SIZE_MAX_BYTES);
        if (c->status == ML_OK && block->weight_bytes == block->size_bytes &&
            block->weight_blocks == 1) {
            fail(c, ML_PEER_FORM);
        }
    }
}

static void
decode_free(struct cursor *c, struct ml_event_state *state, uint8_t op, struct ml_event *e) {
    if ((op & ~(uint8_t)(7 | ML_UNALIGNED | ML_FREE_HEAP)) != 0) {
        fail(c, ML_PEER_UNKNOWN);
    }
    e->kind = (op & 7) == ML_OP_FREE ? ML_EVENT_FREE : ML_EVENT_RESIZE;
    e->time = time_field(c, state);
    e->block.address = address_field(c, state, op);
    if ((op & ML_FREE_HEAP) != 0) {
        e->block.heap = (uint16_t)number_from(c, 1, ML_HEAPS_MAX - 1);
    }
}

static void
decode_node(struct cursor *c, struct ml_event_state *state, uint8_t op, struct ml_event *e) {
    struct ml_event_node *node = &e->node;
    e->kind = ML_EVENT_NODE;
    node->frame = (uint32_t)op >> ML_NODE_FRAME_SHIFT;
    const bool is_address = node->frame == ML_FRAME_ADDRESS;
    if (node->frame >= ML_FRAME_KIND_COUNT || (!is_address && (op & ML_NODE_SAME_MODULE) != 0)) {
        fail(c, ML_PEER_UNKNOWN);
    }
    node->id = (uint32_t)moved(c, state->node_id, signed_number(c), 1, ML_NODES_MAX - 1);
    state->node_id = node->id;
    node->parent = node->id - (uint32_t)number_from(c, 1, node->id);
    if (is_address) {
        if ((op & ML_NODE_SAME_MODULE) == 0) {
            const uint32_t module = (uint32_t)number(c, ML_MODULES_MAX - 1);
            if (c->status == ML_OK && module == state->node_module) {
                fail(c, ML_PEER_FORM);
            }
            state->node_module = module;
        }
        node->module = state->node_module;
        state->node_address =
            moved(c, state->node_address, signed_number(c), 0, ML_ADDRESS_MAX - 1);
        node->address = state->node_address;
    } else if (node->frame == ML_FRAME_THREAD || node->frame == ML_FRAME_SCOPE) {
        node->string_id = (uint32_t)number_from(c, 1, ML_STRINGS_MAX - 1);
    }
}

static void decode_start(struct cursor *c, struct ml_event_start *start) {
    start->version = (uint32_t)number(c, UINT32_MAX);
    if (c->status == ML_OK && start->version != ML_STREAM_VERSION) {
        fail(c, ML_PEER_VERSION);
    }
    start->clock = (uint32_t)number(c, ML_CLOCK_COUNT - 1);
    start->pid = (uint32_t)number(c, UINT32_MAX);
    start->thread_id = (uint32_t)number(c, UINT32_MAX);
    start->ticks = number(c, UINT64_MAX);
    start->monotonic_ns = number(c, UINT64_MAX);
    start->sampling_bytes = number_from(c, 1, ML_SIZE_MAX_BYTES);
    start->stack_mode = (uint32_t)number(c, ML_STACK_MODE_COUNT - 1);
    start->page_bytes = (uint32_t)number(c, UINT32_MAX);
    start->fork_serial = number(c, UINT64_MAX);
}

static void decode_module(struct cursor *c, struct ml_event_module *module) {
    module->id = (uint32_t)number_from(c, 1, ML_MODULES_MAX - 1);
    module->start = number(c, ML_ADDRESS_MAX - 1);
    module->end = module->start + number_from(c, 1, ML_ADDRESS_MAX - module->start);
    module->bias = signed_number(c);
    module->build_id_bytes = blob(c, ML_BUILD_ID_MAX_BYTES, &module->build_id);
    module->path_bytes = blob(c, ML_PATH_MAX_BYTES, &module->path);
}

static void decode_mapping(struct cursor *c, struct ml_event_mapping *mapping) {
    mapping->kind = (uint32_t)number(c, ML_MAPPING_KIND_COUNT - 1);
    mapping->address = number(c, ML_ADDRESS_MAX - 1);
    mapping->length_bytes = number(c, ML_SIZE_MAX_BYTES);
    mapping->old_address = number(c, ML_ADDRESS_MAX - 1);
    mapping->old_length_bytes = number(c, ML_SIZE_MAX_BYTES);
    mapping->protection = (uint32_t)number(c, UINT32_MAX);
    mapping->flags = (uint32_t)number(c, UINT32_MAX);
    mapping->node = (uint32_t)number(c, ML_NODES_MAX - 1);
}

static void decode_named(struct cursor *c, struct ml_event *e) {
    switch (e->kind) {
    case ML_EVENT_THREAD:
        e->thread.thread_id = (uint32_t)number(c, UINT32_MAX);
        e->thread.name_bytes = blob(c, ML_THREAD_NAME_MAX_BYTES - 1, &e->thread.name);
        break;
    case ML_EVENT_STRING:
        e->name.id = (uint32_t)number_from(c, 1, ML_STRINGS_MAX - 1);
        e->name.bytes_count = blob(c, ML_STRING_MAX_BYTES, &e->name.bytes);
        break;
    case ML_EVENT_TYPE:
    case ML_EVENT_HEAP:
        e->name.id = (uint32_t
        )number_from(c, 1, e->kind == ML_EVENT_TYPE ? ML_TYPES_MAX - 1 : ML_HEAPS_MAX - 1);
        e->name.string_id = (uint32_t)number_from(c, 1, ML_STRINGS_MAX - 1);
        break;
    default:
        fail(c, ML_PEER_UNKNOWN);
    }
}

static void decode_timed(struct cursor *c, struct ml_event_state *state, struct ml_event *e) {
    e->time = time_field(c, state);
    switch (e->kind) {
    case ML_EVENT_SAMPLING:
        e->sampling_bytes = number_from(c, 1, ML_SIZE_MAX_BYTES);
        break;
    case ML_EVENT_FORK:
        e->fork_serial = number_from(c, 1, UINT64_MAX);
        break;
    case ML_EVENT_REAPED:
        e->reaped_pid = (uint32_t)number(c, UINT32_MAX);
        break;
    case ML_EVENT_END:
        e->end_kind = (uint32_t)number(c, ML_END_KIND_COUNT - 1);
        break;
    case ML_EVENT_MAPPING:
        decode_mapping(c, &e->mapping);
        break;
    case ML_EVENT_UNLOAD:
        e->unload_module = (uint32_t)number_from(c, 1, ML_MODULES_MAX - 1);
        break;
    case ML_EVENT_LOSS:
        e->loss.reason = (uint32_t)number(c, ML_LOSS_REASON_COUNT - 1);
        e->loss.count = number_from(c, 1, ML_SIZE_MAX_BYTES);
        break;
    default:
        fail(c, ML_PEER_UNKNOWN);
    }
}

static void
decode_extended(struct cursor *c, struct ml_event_state *state, uint8_t op, struct ml_event *e) {
    e->kind = (enum ml_event_kind)(op >> 3);
    if (e->kind == ML_EVENT_START) {
        decode_start(c, &e->start);
    } else if (e->kind == ML_EVENT_MODULE) {
        decode_module(c, &e->module);
    } else if (e->kind < ML_EVENT_SAMPLING) {
        decode_named(c, e);
    } else {
        decode_timed(c, state, e);
    }
}

enum ml_status
ml_event_decode(struct ml_reader *r, struct ml_event_state *state, struct ml_event *out_event) {
    struct cursor c = {.r = *r, .status = ML_OK};
    struct ml_event_state next = *state;
    struct ml_event e = {.kind = ML_EVENT_NONE};
    uint8_t op = 0;
    c.status = ml_reader_u8(&c.r, &op);
    if (c.status != ML_OK) {
        return c.status;
    }
    switch (op & 7) {
    case ML_OP_ALLOC:
        decode_alloc(&c, &next, op, &e);
        break;
    case ML_OP_FREE:
    case ML_OP_RESIZE:
        decode_free(&c, &next, op, &e);
        break;
    case ML_OP_NODE:
        decode_node(&c, &next, op, &e);
        break;
    case ML_OP_CANCEL:
        e.kind = ML_EVENT_CANCEL;
        if (op != ML_OP_CANCEL) {
            fail(&c, ML_PEER_UNKNOWN);
        }
        e.time = time_field(&c, &next);
        break;
    case ML_OP_EXTENDED:
        decode_extended(&c, &next, op, &e);
        break;
    default:
        fail(&c, ML_PEER_UNKNOWN);
    }
    if (c.status == ML_OK) {
        *r = c.r;
        *state = next;
        *out_event = e;
    }
    return c.status;
}

const char *ml_event_kind_name(enum ml_event_kind kind) {
    static const char *const names[] = {
        [ML_EVENT_NONE] = "NONE",     [ML_EVENT_START] = "START",
        [ML_EVENT_THREAD] = "THREAD", [ML_EVENT_MODULE] = "MODULE",
        [ML_EVENT_STRING] = "STRING", [ML_EVENT_TYPE] = "TYPE",
        [ML_EVENT_HEAP] = "HEAP",     [ML_EVENT_SAMPLING] = "SAMPLING",
        [ML_EVENT_FORK] = "FORK",     [ML_EVENT_REAPED] = "REAPED",
        [ML_EVENT_END] = "END",       [ML_EVENT_MAPPING] = "MAPPING",
        [ML_EVENT_UNLOAD] = "UNLOAD", [ML_EVENT_LOSS] = "LOSS",
        [ML_EVENT_ALLOC] = "ALLOC",   [ML_EVENT_FREE] = "FREE",
        [ML_EVENT_RESIZE] = "RESIZE", [ML_EVENT_CANCEL] = "CANCEL",
        [ML_EVENT_NODE] = "NODE",
    };
    const size_t index = (size_t)kind;
    if (index >= sizeof(names) / sizeof(names[0]) || names[index] == NULL) {
        return "?";
    }
    return names[index];
}

enum ml_status ml_frame_header_read(struct ml_reader *r, struct ml_frame_header *out_header) {
    struct ml_reader look = *r;
    uint64_t word = 0;
    struct ml_frame_header header = {0};
    if (ml_reader_u64(&look, &word) != ML_OK || ml_reader_u16(&look, &header.lane) != ML_OK ||
        ml_reader_u16(&look, &header.start_bytes) != ML_OK ||
        ml_reader_u32(&look, &header.thread_id) != ML_OK) {
        return ML_PEER_SHORT;
    }
    header.chunk_number = word >> 16;
    header.end_bytes = (uint16_t)word;
    if (header.lane >= ML_LANES_MAX || header.end_bytes > ML_CHUNK_MAX_BYTES ||
        header.start_bytes >= header.end_bytes) {
        return ML_PEER_RANGE;
    }
    *r = look;
    *out_header = header;
    return ML_OK;
}
