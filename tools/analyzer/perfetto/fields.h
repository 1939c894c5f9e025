/* Protobuf messages field by field: what is not known goes on as it is. Room: tools. Context: one
 * thread; hostile bytes.
 *
 * One rule: a span is borrowed, and a message that is none ends like one that is short. */
#ifndef MEMLOG_TOOLS_ANALYZER_PERFETTO_FIELDS_H
#define MEMLOG_TOOLS_ANALYZER_PERFETTO_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ml_pb_span {
    const uint8_t *bytes;
    size_t count;
};

struct ml_pb_field {
    uint32_t tag;
    bool is_number;           /* a varint */
    bool is_bytes;            /* a text or a message */
    uint64_t number;          /* of a varint */
    struct ml_pb_span inside; /* of bytes */
    struct ml_pb_span whole;  /* with its tag */
};

/* Take the next field off the message. False: there is none, or the rest is no message. */
bool ml_pb_next(struct ml_pb_span *rest, struct ml_pb_field *out_field);

/* The last number, or bytes, of that tag; 0 and no bytes if there are none. */
uint64_t ml_pb_number(struct ml_pb_span message, uint32_t tag);
struct ml_pb_span ml_pb_bytes(struct ml_pb_span message, uint32_t tag);

/* A message that is put together. All zero: empty. */
struct ml_pb_buffer {
    uint8_t *bytes;
    size_t count, capacity;
    bool has_failed; /* no memory; it holds nothing useful any more */
};

void ml_pb_buffer_fini(struct ml_pb_buffer *buffer);
struct ml_pb_span ml_pb_span_of(const struct ml_pb_buffer *buffer);

void ml_pb_put_number(struct ml_pb_buffer *buffer, uint32_t tag, uint64_t number);
void ml_pb_put_bytes(struct ml_pb_buffer *buffer, uint32_t tag, struct ml_pb_span bytes);
/* Whole fields. */
void ml_pb_put_fields(struct ml_pb_buffer *buffer, struct ml_pb_span fields);

#endif
