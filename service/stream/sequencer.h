/* A process's events, lane by lane, put in the order of their stamps. Room: service. Context:
 * whoever works on the client.
 *
 * One rule: order of arrival within a lane; between lanes order of stamps, at equal stamps of lane
 * numbers.
 *
 * Events are returned in runs of one lane and stay in place, so that their caller can prefetch for
 * many at once, however often the lanes alternate.
 */
#ifndef MEMLOG_SERVICE_STREAM_SEQUENCER_H
#define MEMLOG_SERVICE_STREAM_SEQUENCER_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"
#include "service/heap/live_map.h"
#include "service/limits/budget.h"

enum {
    /* One lane more than a client can name: for the host's events about the process. */
    ML_SEQUENCER_HOST_LANE = ML_LANES_MAX,
    ML_SEQUENCER_LANES_MAX,
    /* Memory that an unused queue keeps over a round: 48 KiB. */
    ML_QUEUE_KEPT_EVENTS = 2048
};

/* Kinds of queued events, beside enum ml_event_kind's ALLOC FREE RESIZE CANCEL FORK REAPED END. */
enum {
    ML_TIMED_ALLOC_WIDE = 100, /* an ALLOC of which a ml_timed_rest follows */
    ML_TIMED_HOLE = 101,       /* chunks were lost here: no realloc is completed across */
    ML_TIMED_LEAVE = 102,      /* the host's event: the process ended at this moment */
    ML_TIMED_READING = 103     /* the host's event: its private memory at this moment; key, bytes */
};

/* Among a FREE's or RESIZE's marks: it is of a heap of the program's own. */
enum { ML_TIMED_APART = 1 << 7 };

/* A queued event. */
struct ml_timed {
    uint64_t time;
    uint64_t key;        /* ml_live_key of the block; FORK: serial; REAPED: pid; END: kind;
                            READING: bytes of private memory */
    uint32_t size_bytes; /* of the block of an ALLOC; its low half, of an ALLOC_WIDE; of a FREE or
                            RESIZE its ML_BLOCK_* marks, ML_TIMED_APART; of a READING the KiB that
                            are pages of files */
    uint32_t node : 24;
    uint32_t kind : 8;
};

/* The second half of an ML_TIMED_ALLOC_WIDE: typed, sampled, of a heap of the
 * program's own, or of 4 GiB and more. */
struct ml_timed_rest {
    uint64_t weight_bytes;
    uint64_t weight_blocks;
    uint32_t size_high;
    uint32_t type : 16;
    uint32_t sampled : 1;
};

struct ml_lane_queue {
    struct ml_timed *events; /* [head, count) wait */
    uint32_t head, count, capacity;
    bool used;           /* since the last ml_sequencer_round */
    bool has_wide;       /* an ALLOC_WIDE has come since it was last empty */
    uint64_t last_time;  /* of the last event pushed */
    uint64_t last_stamp; /* as it came with it */
    /* Of the applied events: */
    uint64_t last_alloc; /* key, if the last event was an ALLOC; else 0 */
    uint64_t resize_key; /* of an incomplete RESIZE; else 0 */
    struct ml_live_block resized;
};

/* Events of one lane whose turn has come, the rests of wide ones between them. They lie in the
 * lane's queue: nothing may be pushed before they are applied. */
struct ml_run {
    struct ml_lane_queue *queue;
    const struct ml_timed *events, *end;
};

/* A lane that has events. */
struct ml_lane_head {
    uint64_t time; /* of its first event */
    uint32_t lane;
};

struct ml_sequencer {
    struct ml_budget *budget;
    struct ml_lane_queue **lanes; /* at ml_sequencer_place; NULL: nothing ever came there */
    uint32_t lanes_count;
    struct ml_lane_head *heap; /* by time, then lane */
    uint32_t heap_count, heap_capacity;
    uint64_t queued; /* in all lanes; an ALLOC_WIDE is two */
};

/* The index of a lane's queue. The host's comes first: most clients have few lanes, and all have
 * that one. */
static inline uint32_t ml_sequencer_place(uint32_t lane) {
    return lane == ML_SEQUENCER_HOST_LANE ? 0 : lane + 1;
}

/* The queue of a lane; NULL: nothing ever came there. */
static inline struct ml_lane_queue *
ml_sequencer_queue(const struct ml_sequencer *sequencer, uint32_t lane) {
    const uint32_t place = ml_sequencer_place(lane);
    return place < sequencer->lanes_count ? sequencer->lanes[place] : NULL;
}

void ml_sequencer_init(struct ml_sequencer *sequencer, struct ml_budget *budget);
void ml_sequencer_fini(struct ml_sequencer *sequencer);

/* Room for so many more events of a lane at *out_events, for ml_sequencer_pushed. Errors:
 * ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_sequencer_room(
    struct ml_sequencer *sequencer, uint32_t lane, uint32_t count, struct ml_timed **out_events
);

/* The first `count` of them are there, and their times do not fall. Times before the lane's last
 * one are raised to it. Returns the number of events that were, or that are from before `applied`:
 * late ones. An event that repeats the stamp before it is not late: its time is raised to `applied`
 * as well (ipc/wire/lease.h). */
uint32_t ml_sequencer_pushed(
    struct ml_sequencer *sequencer, uint32_t lane, uint32_t count, uint64_t applied
);

/* Append one event, in both steps; *out_late as above. An ALLOC_WIDE has a rest, others none
 * (NULL). Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_sequencer_push(
    struct ml_sequencer *sequencer,
    uint32_t lane,
    const struct ml_timed *event,
    const struct ml_timed_rest *rest,
    uint64_t applied,
    uint32_t *out_late
);

/* The rest of an event of kind ALLOC_WIDE. */
struct ml_timed_rest ml_timed_rest_of(const struct ml_timed *event);

/* Whether anything waits, and the least time of it. */
bool ml_sequencer_first(const struct ml_sequencer *sequencer, uint64_t *out_time);

/* The places that events up to `until` take in the queues: an ALLOC_WIDE has two. O(log) a lane,
 * unless it has such. */
uint64_t ml_sequencer_count(const struct ml_sequencer *sequencer, uint64_t until);

/* Take the events of one lane that come next and are not after `until`, at most `capacity`, out of
 * its queue. False: there are none. */
bool ml_sequencer_take(
    struct ml_sequencer *sequencer, uint64_t until, uint32_t capacity, struct ml_run *out_run
);

/* Called after a round: frees memory of lanes that were not used since the last one. */
void ml_sequencer_round(struct ml_sequencer *sequencer);

/* A lane's queue, made when it is new. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_sequencer_lane(struct ml_sequencer *sequencer, uint32_t lane, struct ml_lane_queue **out_queue);

#endif
