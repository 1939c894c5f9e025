/* A client whose threads stop between any two stores, as a scheduler may stop them. Room: tests.
 *
 * One rule: the stores have the order of client/stream/flush.c and ipc/wire/staging.h: busy, stamp
 * (perhaps the last one again, ipc/wire/lease.h), record, published. When a chunk is full: pipe (or
 * lost_events), sent, (lost_chunks,) published. What the service can have seen is added to the
 * model once; the rest leaves a hole there. */
#ifndef MEMLOG_TESTS_SERVICE_SESSION_RACER_H
#define MEMLOG_TESTS_SERVICE_SESSION_RACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/staging.h"
#include "service/session/client.h"
#include "tests/service/session/model.h"

enum { RACER_LANES = 5, RACER_SLOTS = 4, RACER_RECORDS = 64 };

/* Where a thread stands: what it does next. */
enum racer_step {
    RACER_IDLE,
    RACER_STAMP,
    RACER_PUBLISH,
    RACER_CLOSE,
    RACER_SEND,
    RACER_LOST_EVENTS,
    RACER_SENT,
    RACER_LOST_CHUNKS,
    RACER_OPEN
};

struct racer_record {
    uint32_t end_bytes;
    bool seen; /* it is in the model */
    uint64_t order;
    struct ml_event event;
};

struct racer_chunk {
    uint64_t number;
    uint32_t bytes, count;
    bool used, dropped, whole; /* whole: the service has it all */
    uint64_t close_order;      /* behind its records */
    struct racer_record records[RACER_RECORDS];
    uint8_t frame[ML_FRAME_MAX_BYTES];
};

struct racer_lane {
    enum racer_step step;
    bool pending; /* an event waits for the next chunk */
    struct ml_event event;
    struct ml_event_state state;
    struct racer_chunk chunks[RACER_SLOTS];
    uint64_t number, unsent;
    uint64_t stamp; /* its last one */
    struct ml_staging_lane header;
};

struct racer {
    struct ml_staging_header header;
    struct racer_lane lanes[RACER_LANES];
    uint32_t slots;
    uint32_t chunk_bytes;
    uint32_t drop_percent; /* of the chunks */
    uint8_t *pipe;         /* [pipe_read, pipe_count) not yet read by the service */
    size_t pipe_read, pipe_count, pipe_capacity;
    struct model *model;
    uint32_t index; /* in the model */
    bool lost;      /* `sent` has passed a dropped chunk */
};

/* One clock, one lease and one source of chance for all racers. */
extern uint64_t racer_clock;
extern uint64_t racer_repeats; /* events with the stamp of the one before, since racer_seed */
/* Nobody holds the lease from here on: something else is about to be stamped. */
void racer_evict(void);
void racer_seed(uint64_t seed);
uint32_t racer_pick(uint32_t below);

struct racer *racer_new(struct model *model, uint32_t index, uint32_t slots);
void racer_free(struct racer *racer);

/* Publish a record without a time, at once: definitions and START, before the threads run. */
void racer_define(struct racer *racer, const struct ml_event *event);

/* An idle thread begins an event; the stamp comes later. */
void racer_begin(struct racer *racer, uint32_t lane, const struct ml_event *event);

/* One store of one thread. False if it is idle. */
bool racer_step(struct racer *racer, uint32_t lane);

/* Close the chunk of an idle thread. */
void racer_flush(struct racer *racer, uint32_t lane);

/* It does nothing more, and the service has read all that it could. */
void racer_killed(struct racer *racer);

/* The staging bytes of a wanted piece. */
const uint8_t *racer_piece(const struct racer *racer, const struct ml_client_want *want);

enum racer_hand {
    RACER_COUNTS,  /* what of the piece counts is in the model now */
    RACER_TOO_LATE /* it is not to be taken: it was overwritten */
};

/* What becomes of a piece, copied before the lane was read as `after`. */
enum racer_hand racer_hand(
    struct racer *racer, const struct ml_client_want *want, const struct ml_staging_lane *after
);

#endif
