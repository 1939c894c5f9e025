/* A client for tests: its lanes encode events into chunks, as the client does. Room: tests.
 *
 * One rule: a builder holds what a process's staging and pipe would hold. A test decides what
 * reaches the session, when, and by which way. */
#ifndef MEMLOG_TESTS_SERVICE_STREAM_BUILDER_H
#define MEMLOG_TESTS_SERVICE_STREAM_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/staging.h"

enum { BUILDER_LANES = 8 };

struct builder_lane {
    uint8_t slot[ML_FRAME_MAX_BYTES]; /* a frame header's room, then the open chunk */
    uint32_t bytes;
    struct ml_event_state state;
    struct ml_staging_lane header;
    uint64_t number;
    uint32_t events; /* ALLOC, FREE, RESIZE, CANCEL in the open chunk */
    bool drops;      /* the pipe is full: chunks are lost */
};

struct builder {
    struct ml_staging_header header;
    struct builder_lane lanes[BUILDER_LANES];
    uint32_t chunk_bytes; /* chunks are closed at this size */
    uint8_t *pipe;        /* [pipe_read, pipe_count) not yet read by the service */
    size_t pipe_read, pipe_count, pipe_capacity;
};

struct builder *builder_new(void);
void builder_free(struct builder *builder);

/* Encode and publish. */
void builder_add(struct builder *builder, uint32_t lane, const struct ml_event *event);

/* Close the lane's open chunk: into the pipe, or lost. */
void builder_flush(struct builder *builder, uint32_t lane);

/* The lane's thread goes over to another profile: what is in the open chunk stays behind. */
void builder_begin(struct builder *builder, uint32_t lane, uint32_t profile);

/* Short forms. */
void builder_start(struct builder *builder, uint32_t pid, uint64_t fork_serial);
void builder_node(struct builder *builder, uint32_t lane, uint32_t id, uint32_t parent);
void builder_alloc(
    struct builder *builder,
    uint32_t lane,
    uint64_t time,
    uint64_t address,
    uint64_t size_bytes,
    uint32_t node
);
void builder_free_block(struct builder *builder, uint32_t lane, uint64_t time, uint64_t address);
void builder_timed(
    struct builder *builder, uint32_t lane, enum ml_event_kind kind, uint64_t time, uint64_t value
);

#endif
