/* What event_decode.c and event_decode_extended.c share. Room: ipc (private). Context: any.
 *
 * One rule: as with ml_reader_*: on any status but ML_OK nothing was consumed. */
#ifndef MEMLOG_IPC_WIRE_EVENT_DECODE_INTERNAL_H
#define MEMLOG_IPC_WIRE_EVENT_DECODE_INTERNAL_H

#include "ipc/wire/event.h"

/* Record fields are nearly always one byte long: that case is inline, the reader does the rest. */
static inline enum ml_status ml_take_varint(struct ml_reader *r, uint64_t *out_value) {
    if (r->pos != r->end && *r->pos < 0x80) {
        *out_value = *r->pos++;
        return ML_OK;
    }
    return ml_reader_varint(r, out_value);
}

static inline enum ml_status ml_take_zigzag(struct ml_reader *r, int64_t *out_value) {
    uint64_t raw = 0;
    const enum ml_status status = ml_take_varint(r, &raw);
    *out_value = (int64_t)((raw >> 1) ^ (0 - (raw & 1)));
    return status;
}

/* A varint of [least, most]. */
static inline enum ml_status
ml_take_bounded(struct ml_reader *r, uint64_t least, uint64_t most, uint64_t *out_value) {
    uint64_t value = 0;
    const enum ml_status status = ml_take_varint(r, &value);
    if (status != ML_OK) {
        return status;
    }
    if (value < least || value > most) {
        return ML_PEER_RANGE;
    }
    *out_value = value;
    return ML_OK;
}

static inline enum ml_status
ml_take_u32(struct ml_reader *r, uint32_t least, uint32_t most, uint32_t *out_value) {
    uint64_t value = 0;
    const enum ml_status status = ml_take_bounded(r, least, most, &value);
    *out_value = (uint32_t)value;
    return status;
}

static inline enum ml_status ml_take_time(struct ml_reader *r, struct ml_event_state *state) {
    uint64_t delta = 0;
    const enum ml_status status = ml_take_varint(r, &delta);
    if (status != ML_OK) {
        return status;
    }
    if (delta > UINT64_MAX - state->time) {
        return ML_PEER_RANGE;
    }
    state->time += delta;
    return ML_OK;
}

/* The rest of an EXTENDED record, behind its op. Reader and state may have moved on an error: they
 * are the caller's copies. */
ML_NODISCARD enum ml_status ml_event_decode_extended(
    struct ml_reader *r, struct ml_event_state *state, uint8_t op, struct ml_event *event
);

#endif
