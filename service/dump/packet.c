#include "service/dump/packet.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRACE_PACKET_TAG = 1,       /* Trace.packet */
    ENVELOPE_MAX_BYTES = 64,    /* tags, lengths and the few numbers around a body */
    TEXT_MAX_BYTES = 64 * 1024, /* longer texts are cut: a packet must always take one */
    PUTS_A_REST = 512           /* of some 0.5 us each, a deep stack's 1 us: a packet takes 25 ms */
};

void ml_dump_packet_init(struct ml_dump_packet *packet, const struct ml_dump_sink *sink) {
    *packet = (struct ml_dump_packet){.sink = sink};
    packet->body = malloc(ML_DUMP_PACKET_MAX_BYTES);
    packet->wire = malloc(ML_DUMP_PACKET_MAX_BYTES + 2 * ENVELOPE_MAX_BYTES);
    if (!packet->body || !packet->wire) {
        packet->status = ML_ENV_MEMORY;
    }
}

void ml_dump_packet_fini(struct ml_dump_packet *packet) {
    free(packet->body);
    free(packet->wire);
    *packet = (struct ml_dump_packet){.status = ML_BUG_CONTRACT};
}

void ml_dump_packet_fail(struct ml_dump_packet *packet, enum ml_status status) {
    if (packet->status == ML_OK) {
        packet->status = status;
    }
}

bool ml_dump_packet_is_empty(const struct ml_dump_packet *packet) {
    return packet->body_count == 0;
}

static pb_ostream_t body_stream(struct ml_dump_packet *packet) {
    return pb_ostream_from_buffer(
        packet->body + packet->body_count,
        ML_DUMP_PACKET_MAX_BYTES - ENVELOPE_MAX_BYTES - packet->body_count
    );
}

/* Take what was encoded. False: the caller must send first. */
static bool body_close(struct ml_dump_packet *packet, const pb_ostream_t *stream, bool encoded) {
    if (++packet->puts == PUTS_A_REST) {
        packet->puts = 0;
        if (packet->sink->rest != NULL) {
            packet->sink->rest(packet->sink->context);
        }
    }
    if (encoded) {
        packet->body_count += stream->bytes_written;
        return true;
    }
    if (packet->body_count == 0) {
        ml_dump_packet_fail(packet, ML_BUG_SPACE);
        return true;
    }
    return false;
}

bool ml_dump_packet_put(
    struct ml_dump_packet *packet, uint32_t tag, const pb_msgdesc_t *fields, const void *message
) {
    pb_ostream_t stream = body_stream(packet);

    return packet->status != ML_OK || body_close(
                                          packet,
                                          &stream,
                                          pb_encode_tag(&stream, PB_WT_STRING, tag) &&
                                              pb_encode_submessage(&stream, fields, message)
                                      );
}

void ml_dump_packet_add(
    struct ml_dump_packet *packet, uint32_t tag, const pb_msgdesc_t *fields, const void *message
) {
    if (!ml_dump_packet_put(packet, tag, fields, message)) {
        ml_dump_packet_fail(packet, ML_BUG_SPACE);
    }
}

/* As much of a text as a packet always takes. */
static bool encode_bytes(pb_ostream_t *stream, const struct ml_string *text) {
    const size_t count = text->count_bytes < TEXT_MAX_BYTES ? text->count_bytes : TEXT_MAX_BYTES;

    return pb_encode_string(stream, (const pb_byte_t *)text->data, count);
}

bool ml_dump_packet_put_text(
    struct ml_dump_packet *packet, uint32_t tag, const struct ml_string *text
) {
    pb_ostream_t stream = body_stream(packet);

    return packet->status != ML_OK ||
           body_close(
               packet,
               &stream,
               pb_encode_tag(&stream, PB_WT_STRING, tag) && encode_bytes(&stream, text)
           );
}

void ml_dump_packet_add_number(struct ml_dump_packet *packet, uint32_t tag, uint64_t value) {
    pb_ostream_t stream = body_stream(packet);

    if (packet->status == ML_OK &&
        !body_close(
            packet,
            &stream,
            pb_encode_tag(&stream, PB_WT_VARINT, tag) && pb_encode_varint(&stream, value)
        )) {
        ml_dump_packet_fail(packet, ML_BUG_SPACE);
    }
}

void ml_dump_packet_append(
    struct ml_dump_packet *packet, const pb_msgdesc_t *fields, const void *message
) {
    pb_ostream_t stream;

    if (packet->status != ML_OK) {
        return;
    }
    stream = pb_ostream_from_buffer(
        packet->body + packet->body_count, ML_DUMP_PACKET_MAX_BYTES - packet->body_count
    );
    if (!pb_encode(&stream, fields, message)) {
        ml_dump_packet_fail(packet, ML_BUG_SPACE);
        return;
    }
    packet->body_count += stream.bytes_written;
}

static size_t head_encode(size_t packet_bytes, uint8_t *out_head) {
    pb_ostream_t stream = pb_ostream_from_buffer(out_head, ENVELOPE_MAX_BYTES);

    if (!pb_encode_tag(&stream, PB_WT_STRING, TRACE_PACKET_TAG) ||
        !pb_encode_varint(&stream, packet_bytes)) {
        return 0;
    }
    return stream.bytes_written;
}

void ml_dump_packet_send(
    struct ml_dump_packet *packet, ml_trace_TracePacket *head, pb_callback_t *payload
) {
    uint8_t *content = packet->wire + ENVELOPE_MAX_BYTES;
    uint8_t trace_head[ENVELOPE_MAX_BYTES];
    pb_ostream_t stream;
    size_t trace_head_bytes = 0;

    if (packet->status != ML_OK) {
        return;
    }
    if (!payload->funcs.encode) {
        payload->funcs.encode = ml_dump_encode_body;
        payload->arg = packet;
    }
    stream = pb_ostream_from_buffer(content, ML_DUMP_PACKET_MAX_BYTES + ENVELOPE_MAX_BYTES);
    if (!pb_encode(&stream, ml_trace_TracePacket_fields, head)) {
        ml_dump_packet_fail(packet, ML_BUG_SPACE);
        return;
    }
    trace_head_bytes = head_encode(stream.bytes_written, trace_head);
    memcpy(content - trace_head_bytes, trace_head, trace_head_bytes);
    packet->status = packet->sink->write(
        packet->sink->context, content - trace_head_bytes, trace_head_bytes + stream.bytes_written
    );
    packet->written_bytes += trace_head_bytes + stream.bytes_written;
    packet->body_count = 0;
}

static bool encode_text(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    return pb_encode_tag_for_field(stream, field) && encode_bytes(stream, *arg);
}

bool ml_dump_encode_body(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct ml_dump_packet *packet = *arg;

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, packet->body, packet->body_count);
}

pb_callback_t ml_dump_text(const struct ml_string *text) {
    pb_callback_t field = {0};

    if (text->count_bytes > 0) {
        field.funcs.encode = encode_text;
        field.arg =
            (void *)(uintptr_t)text; /* nanopb's argument is not const; ours is not written */
    }
    return field;
}

bool ml_dump_next_argument(struct ml_bytes *line, struct ml_string *out_argument) {
    if (line->count_bytes == 0) {
        return false;
    }
    const uint32_t count = (uint32_t)strnlen((const char *)line->data, line->count_bytes);
    const uint32_t taken = count < line->count_bytes ? count + 1 : count;
    *out_argument = (struct ml_string){.data = (const char *)line->data, .count_bytes = count};
    line->data += taken;
    line->count_bytes -= taken;
    return true;
}
