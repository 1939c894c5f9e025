/* Streams from text and to text. Room: tools. Context: any.
 *
 * One rule: unpacking what was packed gives the records back, packing what was unpacked gives the
 * same bytes.
 *
 * Beside records (tools/dev/stream/text.h), a line is empty, a comment ("# ..."), or one of
 *
 *   frame lane=N chunk=N start=N thread=N   begins a frame. Left out: lane 0; the chunk after the
 *                                           lane's last one; where that chunk ended; thread 0
 *   bytes 00ff...                           as they are, into the frame's payload
 *   raw 00ff...                             as they are, between frames */
#ifndef MEMLOG_TOOLS_DEV_STREAM_PACK_H
#define MEMLOG_TOOLS_DEV_STREAM_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"
#include "tools/dev/stream/text.h"

struct ml_stream_packer_lane {
    bool used;
    uint64_t chunk;
    uint32_t bytes; /* of that chunk, so far */
    struct ml_event_state state;
};

struct ml_stream_packer {
    struct ml_stream_packer_lane lanes[ML_LANES_MAX];
    struct ml_frame_header frame; /* the open one, if frame_open */
    bool frame_open;
    uint8_t payload[ML_CHUNK_MAX_BYTES];
    uint32_t payload_bytes;
    struct ml_stream_scratch scratch; /* .error says what was wrong */
    uint8_t *out; /* packed so far; the caller may take bytes and set out_count 0 */
    size_t out_count, out_capacity;
};

/* All zero but for what grows. NULL when there is no memory. */
struct ml_stream_packer *ml_stream_packer_new(void);
void ml_stream_packer_free(struct ml_stream_packer *take_packer);

/* One line without its newline. Errors: ML_PEER_FORM, ML_PEER_RANGE, ML_PEER_LIMIT (a frame that is
 * full), with scratch.error; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stream_packer_line(struct ml_stream_packer *packer, const char *line);

/* The open frame is at its end. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_stream_packer_flush(struct ml_stream_packer *packer);

/* Write a stream as text. What cannot be decoded is written as bytes, with a comment that says why.
 * Errors: ML_ENV_MEMORY, ML_ENV_SYSTEM (writing). */
ML_NODISCARD enum ml_status ml_stream_unpack(const uint8_t *bytes, size_t count_bytes, FILE *out);

#endif
