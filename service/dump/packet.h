/* The packets of a dump, made one after another in a bounded buffer. Room: service. Context: one
 * thread.
 *
 * One rule: the first error stays. Every call after it does nothing. The caller reads `status`
 * once, at the end. */
#ifndef MEMLOG_SERVICE_DUMP_PACKET_H
#define MEMLOG_SERVICE_DUMP_PACKET_H

#include <pb_encode.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/trace/trace.pb.h"
#include "ipc/wire/ml_status.h"
#include "service/dump/sink.h"
#include "service/snapshot/snapshot.h"

struct ml_dump_packet {
    const struct ml_dump_sink *sink;
    uint8_t *body; /* the payload's fields so far; ML_DUMP_PACKET_MAX_BYTES */
    size_t body_count;
    uint8_t *wire; /* the packet as it goes out */
    uint64_t written_bytes;
    uint32_t puts;                /* since the sink last rested */
    uint32_t exact_packets_count; /* of our own packets, sent so far */
    enum ml_status status;
};

/* On ML_ENV_MEMORY in packet->status nothing else works, _fini is still allowed. */
void ml_dump_packet_init(struct ml_dump_packet *packet, const struct ml_dump_sink *sink);
void ml_dump_packet_fini(struct ml_dump_packet *packet);

/* Add a message as field `tag` of the payload. False: it does not fit any more. Send what is there,
 * and put it again. */
ML_NODISCARD bool ml_dump_packet_put(
    struct ml_dump_packet *packet, uint32_t tag, const pb_msgdesc_t *fields, const void *message
);

/* Add bytes as field `tag`; likewise. */
ML_NODISCARD bool
ml_dump_packet_put_text(struct ml_dump_packet *packet, uint32_t tag, const struct ml_string *text);

/* Add a message or a varint field that must fit. */
void ml_dump_packet_add(
    struct ml_dump_packet *packet, uint32_t tag, const pb_msgdesc_t *fields, const void *message
);
void ml_dump_packet_add_number(struct ml_dump_packet *packet, uint32_t tag, uint64_t value);

/* Add the fields of a message to those of the payload. They must fit. */
void ml_dump_packet_append(
    struct ml_dump_packet *packet, const pb_msgdesc_t *fields, const void *message
);

/* Whether nothing was put since the last packet was sent. */
bool ml_dump_packet_is_empty(const struct ml_dump_packet *packet);

/* Send the body as `*payload`, which is a member of `*head`; the body is empty afterwards. */
void ml_dump_packet_send(
    struct ml_dump_packet *packet, ml_trace_TracePacket *head, pb_callback_t *payload
);

/* Note an error; the first one stays. */
void ml_dump_packet_fail(struct ml_dump_packet *packet, enum ml_status status);

/* For callback fields: `*arg` is the packet whose body is to be put in. */
bool ml_dump_encode_body(pb_ostream_t *stream, const pb_field_t *field, void *const *arg);

/* Take the next argument off a command line in which each ends with a NUL; the last may have been
 * cut. False: none is left. */
bool ml_dump_next_argument(struct ml_bytes *line, struct ml_string *out_argument);

/* A callback field that holds a text; nothing when the text is empty. */
pb_callback_t ml_dump_text(const struct ml_string *text);

#endif
