#include "ipc/wire/event_plain.h"

#include <string.h>

static inline uint32_t load_32(const uint8_t *pos) {
    uint32_t word = 0;
    memcpy(&word, pos, sizeof(word));
    return word;
}

static inline int64_t unzigzag(uint64_t raw) {
    return (int64_t)((raw >> 1) ^ (0 - (raw & 1)));
}

/* A number: where it ends, NULL if it is not one that is plain. */
struct number {
    const uint8_t *pos;
    uint64_t value;
};

/* Of four bytes and more; at most eight, so that no sum or shift of it can wrap below. */
static struct number long_number(const uint8_t *pos) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 56; shift += 7) {
        const uint8_t byte = *pos++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return (struct number){byte != 0 ? pos : NULL, value};
        }
    }
    return (struct number){NULL, 0};
}

/* Up to three bytes, as nearly all are, from one load. A last byte of 0 is not minimal form. */
static inline struct number take_number(const uint8_t *pos) {
    const uint32_t word = load_32(pos);
    if ((word & 0x80) == 0) {
        return (struct number){pos + 1, word & 0x7f};
    }
    if ((word & 0x8000) == 0 && (word & 0x7f00) != 0) {
        return (struct number){pos + 2, (word & 0x7f) | (word >> 1 & 0x3f80)};
    }
    if ((word & 0x808000) == 0x8000 && (word & 0x7f0000) != 0) {
        return (struct number
        ){pos + 3, (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000)};
    }
    return long_number(pos);
}

/* Two bytes as a rule: the ticks between two events of a thread. */
static inline struct number take_time(const uint8_t *pos, uint64_t base) {
    const struct number delta = take_number(pos);
    const uint64_t time = base + delta.value;
    return (struct number){time >= base ? delta.pos : NULL, time};
}

static inline struct number take_address(const uint8_t *pos, uint64_t base, bool unaligned) {
    const struct number raw = take_number(pos);
    const int64_t delta = unzigzag(raw.value);
    uint64_t address = base + ((uint64_t)delta << 4);
    if (unaligned) {
        address = delta % 16 != 0 ? base + (uint64_t)delta : 0;
    }
    return (struct number){address - 1 < ML_ADDRESS_MAX - 1 ? raw.pos : NULL, address};
}

static inline struct number take_node(const uint8_t *pos, uint32_t base) {
    const struct number raw = take_number(pos);
    const uint64_t node = base + (uint64_t)unzigzag(raw.value);
    return (struct number){raw.value != 0 && node < ML_NODES_MAX ? raw.pos : NULL, node};
}

/* One record. Returns where the next one begins, NULL if it is not plain. */
static inline const uint8_t *
take_one(const uint8_t *pos, struct ml_event_state *state, struct ml_event_plain *out_event) {
    const uint32_t op = *pos;
    const uint32_t kind = op & ~(uint32_t)(ML_UNALIGNED | ML_ALLOC_SAME_NODE);
    const bool alloc = kind == ML_OP_ALLOC;
    if (!alloc && (op & ~(uint32_t)ML_UNALIGNED) != ML_OP_FREE &&
        (op & ~(uint32_t)ML_UNALIGNED) != ML_OP_RESIZE) {
        return NULL;
    }
    const struct number time = take_time(pos + 1, state->time);
    if (time.pos == NULL) {
        return NULL;
    }
    const struct number address = take_address(time.pos, state->address, (op & ML_UNALIGNED) != 0);
    if (address.pos == NULL) {
        return NULL;
    }
    struct number last = address;
    uint32_t size_bytes = 0;
    uint32_t node = 0;
    if (alloc) {
        last = take_number(address.pos);
        if (last.pos == NULL || last.value > UINT32_MAX) {
            return NULL;
        }
        size_bytes = (uint32_t)last.value;
        node = state->node;
        if ((op & ML_ALLOC_SAME_NODE) == 0) {
            last = take_node(last.pos, node);
            if (last.pos == NULL) {
                return NULL;
            }
            node = (uint32_t)last.value;
            state->node = node;
        }
    }
    state->time = time.value;
    state->address = address.value;
    out_event->time = time.value;
    out_event->address = address.value;
    out_event->size_bytes = size_bytes;
    out_event->node = node & (ML_NODES_MAX - 1);
    out_event->kind = (kind + ML_EVENT_ALLOC - ML_OP_ALLOC) & 0xff;
    return last.pos;
}

_Static_assert(
    ML_EVENT_ALLOC - ML_OP_ALLOC == ML_EVENT_FREE - ML_OP_FREE &&
        ML_EVENT_FREE - ML_OP_FREE == ML_EVENT_RESIZE - ML_OP_RESIZE,
    "an op's kind is a sum away"
);

size_t ml_event_decode_plain(
    struct ml_reader *r,
    struct ml_event_state *state,
    struct ml_event_plain *out_events,
    size_t capacity,
    uint64_t *out_size_bytes
) {
    struct ml_event_state now = *state;
    const uint8_t *pos = r->pos;
    uint64_t size_bytes = 0;
    size_t count = 0;
    while (count < capacity && (size_t)(r->end - pos) >= ML_EVENT_PLAIN_MARGIN_BYTES) {
        const uint8_t *next = take_one(pos, &now, &out_events[count]);
        if (next == NULL) {
            break;
        }
        pos = next;
        size_bytes += out_events[count].size_bytes;
        count++;
    }
    r->pos = pos;
    *state = now;
    *out_size_bytes = size_bytes;
    return count;
}

bool ml_event_decode_plain_node(
    struct ml_reader *r, struct ml_event_state *state, struct ml_event_node *out_node
) {
    if ((size_t)(r->end - r->pos) < ML_EVENT_PLAIN_MARGIN_BYTES ||
        *r->pos != (ML_OP_NODE | ML_NODE_SAME_MODULE | ML_FRAME_ADDRESS << ML_NODE_FRAME_SHIFT)) {
        return false;
    }
    const struct number id_raw = take_number(r->pos + 1);
    const uint64_t id = state->node_id + (uint64_t)unzigzag(id_raw.value);
    if (id_raw.pos == NULL || id - 1 >= ML_NODES_MAX - 1) {
        return false;
    }
    const struct number below = take_number(id_raw.pos);
    if (below.pos == NULL || below.value - 1 >= id) {
        return false;
    }
    const struct number moved = take_number(below.pos);
    const uint64_t address = state->node_address + (uint64_t)unzigzag(moved.value);
    if (moved.pos == NULL || address >= ML_ADDRESS_MAX) {
        return false;
    }
    state->node_id = (uint32_t)id;
    state->node_address = address;
    *out_node = (struct ml_event_node
    ){.id = (uint32_t)id,
      .parent = (uint32_t)(id - below.value),
      .frame = ML_FRAME_ADDRESS,
      .module = state->node_module,
      .address = address};
    r->pos = moved.pos;
    return true;
}
