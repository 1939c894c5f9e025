/* A client's bytes, from the pipe and from staging, turned into events: each byte once. Room:
 * service. Context: whoever works on the client.
 *
 * One rule: a piece of a chunk is told by (lane, chunk number, start, end); what of it was seen
 * before, by whichever way, is skipped.
 *
 * The pipe gives a lane's chunks in order; staging gives the last one or few before the pipe does.
 * Chunk numbers that the pipe jumps over were dropped: a hole. Staging may be taken for known
 * before a chunk in front of it has come down the pipe (its counters are read while they change):
 * such a chunk is decoded when it comes, behind its followers. */
#ifndef MEMLOG_SERVICE_STREAM_READER_H
#define MEMLOG_SERVICE_STREAM_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/event_plain.h"
#include "ipc/wire/ml_status.h"
#include "service/limits/budget.h"

enum { ML_STREAM_RUN_EVENTS = 256 /* decoded at once */ };

/* Where events go. Any status but ML_OK ends the reading and is handed up. */
struct ml_stream_sink {
    void *context;
    /* Where plain records that follow each other go: room for so many, until any other call. */
    enum ml_status (*on_room
    )(void *context, uint32_t lane, uint32_t count, struct ml_event_plain **out_events);
    /* The first `count` of them are there; their sizes' sum. */
    enum ml_status (*on_run)(void *context, uint32_t lane, uint32_t count, uint64_t size_bytes);
    /* One record of any kind. */
    enum ml_status (*on_event)(void *context, uint32_t lane, const struct ml_event *event);
    enum ml_status (*on_hole)(void *context, uint32_t lane, uint64_t chunks);
};

/* How far a chunk is decoded. */
struct ml_chunk {
    uint64_t number;
    uint32_t seen_bytes;
    bool open;   /* there is such a chunk */
    bool broken; /* a piece of it is missing: what follows there cannot be decoded */
    bool whole;  /* it came by pipe, or was copied after it was closed: nothing of it is lost */
    bool cut;    /* it was left before it was whole: its rest is counted as lost */
    struct ml_event_state state;
};

struct ml_stream_lane {
    struct ml_chunk now;           /* the latest chunk */
    struct ml_chunk aside;         /* one before it that the pipe may still continue */
    uint64_t hole_start, hole_end; /* the last chunk numbers jumped over: [start, end) */
    uint64_t pipe_next;            /* one behind the last chunk number that came by pipe */
    uint32_t pipe_bytes;           /* of chunk pipe_next - 1 that came by pipe */
    uint64_t pipe_chunks;          /* chunks of which something came by pipe */
};

struct ml_stream_reader {
    struct ml_budget *budget;
    struct ml_stream_sink sink;
    struct ml_stream_lane **lanes; /* NULL: nothing ever came there */
    uint32_t lanes_count;
    uint32_t profile;     /* frames of another one are nobody's; chunk numbers here are within it */
    uint64_t lost_chunks; /* jumped over, and not come since; broken ones included */
    uint64_t decoded_bytes; /* of records; each once */
    uint32_t frame_bytes;   /* of a frame that the pipe gave in parts */
    uint8_t *frame;         /* ML_FRAME_MAX_BYTES once there was one */
};

/* `profile`: ipc/wire/staging.h. */
void ml_stream_reader_init(
    struct ml_stream_reader *reader,
    struct ml_budget *budget,
    const struct ml_stream_sink *sink,
    uint32_t profile
);

/* Give everything back but the count of lost chunks. */
void ml_stream_reader_fini(struct ml_stream_reader *reader);

/* Bytes of the pipe, cut anywhere. Errors: ML_PEER_*, ML_ENV_MEMORY, the sink's. The stream is at
 * its end then. */
ML_NODISCARD enum ml_status
ml_stream_reader_feed(struct ml_stream_reader *reader, const uint8_t *bytes, size_t count_bytes);

/* Bytes [start, end) of a chunk, out of staging; `whole`: the chunk was closed at `end`. Errors: as
 * _feed. */
ML_NODISCARD enum ml_status ml_stream_reader_staged(
    struct ml_stream_reader *reader,
    uint32_t lane,
    uint64_t number,
    uint32_t start_bytes,
    uint32_t end_bytes,
    const uint8_t *bytes,
    bool whole
);

/* Whether everything of [0, bytes) of chunk `number` and of the chunks before it was seen or is
 * known to be lost. */
bool ml_stream_reader_reached(
    const struct ml_stream_reader *reader, uint32_t lane, uint64_t number, uint32_t bytes
);

/* Chunks below `sent` that have not come by pipe: still in it, or dropped. 0 where the pipe has
 * gone past all of them. */
uint64_t
ml_stream_reader_missing(const struct ml_stream_reader *reader, uint32_t lane, uint64_t sent);

/* The bytes of chunk `number` that were seen. */
uint32_t
ml_stream_reader_seen(const struct ml_stream_reader *reader, uint32_t lane, uint64_t number);

/* How far the lane has come: grows with every byte that is decoded. */
uint64_t ml_stream_reader_position(const struct ml_stream_reader *reader, uint32_t lane);

/* The first chunk number that could be new in this lane. */
uint64_t ml_stream_reader_next(const struct ml_stream_reader *reader, uint32_t lane);

#endif
