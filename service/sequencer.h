/* A process's events, lane by lane, put in the order of their stamps. Room: service. Context: the
 * session's one thread.
 *
 * One rule: within a lane the order of arrival holds; between lanes the stamps decide, at equal
 * stamps the smaller lane number. */
#ifndef MEMLOG_SERVICE_SEQUENCER_H
#define MEMLOG_SERVICE_SEQUENCER_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/event.h"
#include "ipc/ml_status.h"
#include "service/budget.h"
#include "service/live_map.h"

enum {
    /* One lane more than a client can name: for what the host says of the process. */
    ML_SEQUENCER_HOST_LANE = ML_LANES_MAX,
    ML_SEQUENCER_LANES_MAX,
    /* A queue's memory that is kept over a round with nothing in it: 64 KiB. */
    ML_QUEUE_KEPT_EVENTS = 2048
};

/* What is queued, beside enum ml_event_kind's ALLOC FREE RESIZE CANCEL FORK REAPED END. */
enum {
    ML_TIMED_WEIGHTS = 100, /* follows an ALLOC: key = weight_bytes, value = weight_blocks */
    ML_TIMED_HOLE = 101,    /* chunks were lost here: no half-done realloc is completed across it */
    ML_TIMED_LEAVE = 102    /* the host says that the process ended at this moment */
};

/* A queued event. */
struct ml_timed {
    uint64_t time;
    uint64_t key;   /* ml_live_key of the block; FORK: serial; REAPED: pid; END: kind */
    uint64_t value; /* size_bytes of the block */
    uint32_t node;
    uint16_t type;
    uint8_t kind;
    bool weighted; /* a ML_TIMED_WEIGHTS with the same time follows */
};

struct ml_lane_queue {
    struct ml_timed *events; /* [head, count) wait */
    uint32_t head, count, capacity;
    uint64_t last_time; /* of the last event pushed */
    /* Of the applied events: */
    uint64_t last_alloc; /* key, if the last event was an ALLOC; else 0 */
    uint64_t resize_key; /* of a RESIZE that nothing has completed; else 0 */
    struct ml_live_block resized;
};

struct ml_sequencer {
    struct ml_budget *budget;
    struct ml_lane_queue **lanes; /* NULL: nothing ever came there */
    uint32_t lanes_count;
    uint16_t *heap; /* lanes that have events, by the time of their first */
    uint32_t heap_count, heap_capacity;
    uint64_t queued; /* events in all lanes */
};

void ml_sequencer_init(struct ml_sequencer *sequencer, struct ml_budget *budget);
void ml_sequencer_fini(struct ml_sequencer *sequencer);

/* Append. A time before the lane's last one is raised to it: *out_raised says so.
 * Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_sequencer_push(
    struct ml_sequencer *sequencer, uint32_t lane, const struct ml_timed *event, bool *out_raised
);

/* Whether anything waits, and the least time of it. */
bool ml_sequencer_first(const struct ml_sequencer *sequencer, uint64_t *out_time);

/* The longest run of events of one lane that come next and not after `until`. NULL when there is
 * none. To be followed by ml_sequencer_took() of the run's lane, before anything is pushed. */
struct ml_lane_queue *ml_sequencer_run(
    struct ml_sequencer *sequencer,
    uint64_t until,
    const struct ml_timed **out_events,
    uint32_t *out_count
);

/* The first `count` events of the run are applied. */
void ml_sequencer_took(struct ml_sequencer *sequencer, uint32_t count);

/* A lane's queue, made when it is new. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_sequencer_lane(struct ml_sequencer *sequencer, uint32_t lane, struct ml_lane_queue **out_queue);

#endif
