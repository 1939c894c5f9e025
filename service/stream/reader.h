/* A client's bytes, from the pipe and from staging, turned into events: each byte once. Room:
 * service. Context: whoever works on the client.
 *
 * One rule: (lane, chunk number, start, end) identifies a piece of a chunk; bytes seen before, by
 * either way, are skipped.
 *
 * The pipe gives a lane's chunks in order; staging gives the last one or few before the pipe does.
 * Chunk numbers that the pipe jumps over were dropped: a hole. Staging may count as known before an
 * earlier chunk has come down the pipe (its counters are read while they change). Such a chunk is
 * decoded when it comes, after its successors. */
#ifndef MEMLOG_SERVICE_STREAM_READER_H
#define MEMLOG_SERVICE_STREAM_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/event_plain.h"
#include "ipc/wire/ml_status.h"
#include "service/limits/budget.h"

enum { ML_STREAM_RUN_EVENTS = 256 /* decoded at once */ };

/* The receiver of events. Any status but ML_OK ends the reading and is returned. */
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

/* What is known of a chunk:
 *
 *   NONE     there is none                        -> PARTIAL by its first piece
 *   PARTIAL  more of it may come                  -> WHOLE, BROKEN, CUT
 *   WHOLE    it came by pipe, or was copied after
 *            it was closed: nothing of it is lost -> BROKEN
 *   CUT      a later chunk came by then: its rest
 *            is counted as lost                   -> PARTIAL when the pipe brings it, BROKEN
 *   BROKEN   a piece of it is missing, so that its
 *            rest cannot be decoded */
enum ml_chunk_state {
    ML_CHUNK_NONE,
    ML_CHUNK_PARTIAL,
    ML_CHUNK_WHOLE,
    ML_CHUNK_CUT,
    ML_CHUNK_BROKEN
};

/* How far a chunk is decoded. */
struct ml_chunk {
    uint64_t number;
    uint32_t seen_bytes;
    enum ml_chunk_state state;
    struct ml_event_state decoder;
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
    uint32_t profile;       /* other profiles are ignored; chunk numbers are within it */
    uint64_t lost_chunks;   /* jumped over, and not come since; broken ones included */
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

/* Free everything but the count of lost chunks. */
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

/* Chunks below `sent` that have not come by pipe: still in it, or dropped. 0 once the pipe has
 * passed them all. */
uint64_t
ml_stream_reader_missing(const struct ml_stream_reader *reader, uint32_t lane, uint64_t sent);

/* The bytes of chunk `number` that were seen. */
uint32_t
ml_stream_reader_seen(const struct ml_stream_reader *reader, uint32_t lane, uint64_t number);

/* The lane's progress: grows with every byte that is decoded. */
uint64_t ml_stream_reader_position(const struct ml_stream_reader *reader, uint32_t lane);

/* The first chunk number that could be new in this lane. */
uint64_t ml_stream_reader_next(const struct ml_stream_reader *reader, uint32_t lane);

#endif
