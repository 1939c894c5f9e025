/* Reads a client's staging: which chunks to copy, and up to when each lane is known. Room: service.
 * Context: whoever works on the client.
 *
 * One rule: everything here is a copy, made while the client writes, so two words of a lane may be
 * inconsistent. An inconsistent lane counts as not settled. */
#ifndef MEMLOG_SERVICE_STREAM_STAGING_READER_H
#define MEMLOG_SERVICE_STREAM_STAGING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "ipc/wire/staging.h"
#include "service/limits/budget.h"
#include "service/stream/reader.h"

enum { ML_SESSION_BUSY_ROUNDS = 16 /* advances, and ml_session_patience besides */ };

/* A lane as it was seen last; chunk numbers within the profile. */
struct ml_lane_view {
    uint64_t published; /* ipc/wire/staging.h, busy bit included */
    uint64_t sent;
    uint64_t lost_chunks;
    uint64_t lost_before; /* lost_chunks of the look before: all of them lie below `sent` */
    uint64_t lost_events;
    uint64_t produced;
    uint64_t waits, waited_ns, longest_wait_ns;
    uint64_t staged_next;  /* one behind the last chunk that was copied whole */
    uint64_t known_ticks;  /* every event before this moment is known */
    uint64_t round_word;   /* value at the last round's end, to tell whether it has moved */
    uint64_t still_since;  /* the round since which it has been open and has not moved, ... */
    uint32_t still_rounds; /* ... and rounds since */
};

/* Sums over all lanes; saturating, since they are untrusted. */
struct ml_lane_sums {
    uint64_t produced, lost_events, lost_chunks;
    uint64_t waits, waited_ns, longest_wait_ns;
    uint32_t busy_lanes;
};

/* A piece of staging that the session wants to see: `bytes` at `offset` of the memfd, chunk
 * `number` of `lane`. */
struct ml_client_want {
    uint64_t number;
    uint64_t offset;
    uint32_t lane;
    uint32_t start_bytes, end_bytes; /* of the chunk's records */
};

struct ml_staging_reader {
    struct ml_budget *budget;
    struct ml_stream_reader *stream; /* of the same client; outlives this */
    struct ml_lane_view *lanes;
    uint32_t lanes_count;
    uint32_t slots;
    uint32_t profile;                /* lanes that are still in another one are empty */
    uint64_t patience_ticks;         /* a lane still for less is never given up */
    uint64_t round_ticks;            /* the last round's */
    bool asked;                      /* there was a first look */
    bool pipe_over;                  /* the pipe brings no more */
    struct ml_staging_header header; /* counters of this profile, as seen last */
    struct ml_staging_header before; /* what they were when it began; all 0 for the first */
    struct ml_lane_sums past;        /* of the lanes that were given back */
};

/* Reads the profile that the stream reader reads. */
void ml_staging_reader_init(
    struct ml_staging_reader *staging, struct ml_budget *budget, struct ml_stream_reader *stream
);

/* Free everything but the counters. */
void ml_staging_reader_fini(struct ml_staging_reader *staging);

/* See ml_client_lanes. */
ML_NODISCARD enum ml_status ml_staging_reader_look(
    struct ml_staging_reader *staging,
    const struct ml_staging_header *header,
    const struct ml_staging_lane *lanes,
    uint32_t lanes_count,
    struct ml_client_want *wants,
    size_t wants_capacity,
    size_t *out_wants_count
);

/* See ml_client_tail. */
ML_NODISCARD enum ml_status ml_staging_reader_take(
    struct ml_staging_reader *staging,
    const struct ml_client_want *want,
    const uint8_t *bytes,
    const struct ml_staging_lane *lane_after
);

/* See ml_client_pipe_over. */
void ml_staging_reader_pipe_over(struct ml_staging_reader *staging);

/* See ml_client_settled. */
bool ml_staging_reader_settled(const struct ml_staging_reader *staging);

/* `ticks`, or less if a lane is open: busy, or with published bytes still in the pipe. Such a lane
 * is known up to just before its last event that is here, or to the end of the last round in which
 * it was not open. So a pipe that never runs empty delays only its own contents. */
uint64_t ml_staging_reader_known(
    const struct ml_staging_reader *staging,
    uint64_t ticks,
    uint64_t (*last_time)(const void *context, uint32_t lane),
    const void *context
);

/* Called after the round that began at `ticks`. */
void ml_staging_reader_round(struct ml_staging_reader *staging, uint64_t ticks);

/* Over all lanes, as seen last. */
struct ml_lane_sums ml_staging_reader_sums(const struct ml_staging_reader *staging);

#endif
