#include "tools/analyzer/perfetto/fields.h"

#include <pb_decode.h>
#include <pb_encode.h>

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"

/* A tag and a number, or a tag and a length. */
enum { HEAD_MAX_BYTES = 16 };

static bool take_bytes(pb_istream_t *stream, struct ml_pb_span *out_inside) {
    uint64_t count = 0;

    if (!pb_decode_varint(stream, &count) || count > stream->bytes_left) {
        return false;
    }
    /* Not copied: the stream reads from memory, and its state is the position. */
    *out_inside = (struct ml_pb_span){.bytes = stream->state, .count = (size_t)count};
    return pb_read(stream, NULL, (size_t)count);
}

bool ml_pb_next(struct ml_pb_span *rest, struct ml_pb_field *out_field) {
    pb_istream_t stream = pb_istream_from_buffer(rest->bytes, rest->count);
    pb_wire_type_t type = PB_WT_VARINT;
    bool is_end = false;
    bool is_whole = rest->count > 0;

    *out_field = (struct ml_pb_field){0};
    is_whole = is_whole && pb_decode_tag(&stream, &type, &out_field->tag, &is_end);
    if (is_whole && type == PB_WT_VARINT) {
        out_field->is_number = true;
        is_whole = pb_decode_varint(&stream, &out_field->number);
    } else if (is_whole && type == PB_WT_STRING) {
        out_field->is_bytes = true;
        is_whole = take_bytes(&stream, &out_field->inside);
    } else if (is_whole) {
        is_whole = pb_skip_field(&stream, type);
    }
    if (!is_whole) {
        return false;
    }
    out_field->whole =
        (struct ml_pb_span){.bytes = rest->bytes, .count = rest->count - stream.bytes_left};
    rest->bytes += out_field->whole.count;
    rest->count = stream.bytes_left;
    return true;
}

uint64_t ml_pb_number(struct ml_pb_span message, uint32_t tag) {
    struct ml_pb_field field;
    uint64_t number = 0;

    while (ml_pb_next(&message, &field)) {
        if (field.tag == tag && field.is_number) {
            number = field.number;
        }
    }
    return number;
}

struct ml_pb_span ml_pb_bytes(struct ml_pb_span message, uint32_t tag) {
    struct ml_pb_field field;
    struct ml_pb_span bytes = {0};

    while (ml_pb_next(&message, &field)) {
        if (field.tag == tag && field.is_bytes) {
            bytes = field.inside;
        }
    }
    return bytes;
}

void ml_pb_buffer_fini(struct ml_pb_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct ml_pb_buffer){0};
}

struct ml_pb_span ml_pb_span_of(const struct ml_pb_buffer *buffer) {
    return (struct ml_pb_span){.bytes = buffer->bytes, .count = buffer->count};
}

void ml_pb_put_fields(struct ml_pb_buffer *buffer, struct ml_pb_span fields) {
    if (fields.count == 0) {
        return;
    }
    if (buffer->has_failed ||
        !ML_GROW(buffer->bytes, buffer->capacity, buffer->count + fields.count)) {
        buffer->has_failed = true;
        return;
    }
    memcpy(buffer->bytes + buffer->count, fields.bytes, fields.count);
    buffer->count += fields.count;
}

static void put_head(struct ml_pb_buffer *buffer, pb_wire_type_t type, uint32_t tag, uint64_t one) {
    uint8_t bytes[HEAD_MAX_BYTES];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof bytes);

    if (!pb_encode_tag(&stream, type, tag) || !pb_encode_varint(&stream, one)) {
        buffer->has_failed = true;
        return;
    }
    ml_pb_put_fields(buffer, (struct ml_pb_span){.bytes = bytes, .count = stream.bytes_written});
}

void ml_pb_put_number(struct ml_pb_buffer *buffer, uint32_t tag, uint64_t number) {
    put_head(buffer, PB_WT_VARINT, tag, number);
}

void ml_pb_put_bytes(struct ml_pb_buffer *buffer, uint32_t tag, struct ml_pb_span bytes) {
    put_head(buffer, PB_WT_STRING, tag, bytes.count);
    ml_pb_put_fields(buffer, bytes);
}
