/* A lane: one thread's staging buffer and its way into the pipe. Room: client (private). Context:
 * the malloc path; a lane is its thread's alone from take to give.
 *
 * One rule: nothing becomes visible but by one release store of the lane header's `published`. */
#ifndef MEMLOG_CLIENT_STREAM_LANE_H
#define MEMLOG_CLIENT_STREAM_LANE_H

#include <stdatomic.h>
#include <stdint.h>

#include "client/sampling/poisson.h"
#include "client/state/process.h"
#include "client/unwind/unwind.h"
#include "ipc/wire/event_put.h"

/* What a lane is for, beside its thread's own events with stacks of frames alone; bits. */
enum ml_lane_use {
    ML_LANE_SECOND = 1, /* events of signal handlers: no cached stack */
    ML_LANE_DECOY = 2,  /* nothing: client/stream/decoy.h */
    ML_LANE_PSEUDO = 4, /* stacks of scopes alone */
    ML_LANE_MIXED = 8,  /* stacks of frames and scopes */
    ML_LANE_SCRIPTS =
        16 /* stacks of frames and an interpreter's functions, with ML_LANE_MIXED too */
};

struct ml_scripts;

/* A lane's part in the lease (ipc/wire/lease.h says why); all 0 but for `self` and `wait` when the
 * lane is first used. */
struct ml_lease {
    uint64_t self;  /* value of `holder` while the lane has it */
    uint32_t again; /* events that may still repeat the lane's last stamp */
    uint32_t wait;  /* events until ml_lease_step, >= 1; counted while `again` is 0 or in vain */
    /* Slower ways read the rest. */
    uint32_t pause;          /* `wait`, when nothing is held */
    uint64_t since_ticks;    /* it took the lease then, and may have lost it; 0: it did not */
    uint64_t since_produced; /* events of the lane by then */
};

/* The private part, in the arena. The fields that every event reads come first, on little more than
 * one cache line. */
struct ml_lane {
    _Alignas(64) uint8_t *pos;      /* next byte of the open chunk */
    uint8_t *limit;                 /* a hot record may start before this */
    struct ml_staging_lane *header; /* shared */
    uint64_t origin; /* with `pos` added it is header->published: the chunk's number, less start */
    uint64_t clamp;  /* the last stamp: the stream's times never fall within a lane */
    uint32_t use;    /* enum ml_lane_use */
    uint32_t tag;    /* of `profile`, as in stack nodes: client/stream/stack_table.h */
    struct ml_event_state state;
    struct ml_lease lease;
    uint8_t *start;           /* first record byte of the open chunk */
    uint64_t number;          /* of the open chunk */
    uint64_t unsent;          /* the first chunk that is not in the pipe; private form of `sent` */
    uint64_t next;            /* the chunk that is being opened; 0: none */
    uint64_t produced_before; /* events of the lane when the open chunk began */
    uint64_t interval;        /* sampling_bytes, as the lane's records say; 0: as START */
    uint32_t index;
    uint32_t thread_id;
    uint32_t thread_node; /* the thread's name as a root frame, in the modes that want one */
    uint32_t dropped;     /* the current flush has dropped a chunk */
    uint32_t unchecked;   /* stacks since the last one that was compared with libunwind's */
    uint32_t next_free;   /* free stack: name */
    uint32_t profile;     /* that its records belong to */
    /* ML_LANE_MIXED: what the cached stack's nodes were found with. */
    uint32_t notes_version;     /* of the thread's notes */
    uint32_t notes_places;      /* which frames had opened its scopes */
    struct ml_scripts *scripts; /* ML_LANE_SCRIPTS: the interpreter's functions; NULL: none yet */
    struct ml_unwind_thread unwind;
    struct ml_poisson_memo chances; /* for sampling */
};

/* A free lane for the calling thread, in the present profile; NULL when there is none (counted). */
struct ml_lane *ml_lane_take(uint32_t thread_id);

/* Its next record is the first one of the lane in that profile. The open chunk stays with its own
 * profile. The caller forgets the lane's cached stack. */
void ml_lane_begin(struct ml_lane *lane, uint32_t profile);

/* The thread needs it no more. Published records stay. */
void ml_lane_give(struct ml_lane *lane);

/* The open chunk is full: put it into the pipe and open the next. The lane waits for a full pipe
 * only when the next chunk needs the slot of an unsent one, and at most a second. Then the oldest
 * chunk is dropped and counted. The next chunk repeats its definitions, in at most half of its
 * room. */
void ml_lane_flush(struct ml_lane *lane);

/* siglongjmp left the lane in the middle of an operation: repair it. Unpublished records are lost;
 * a frame that may be in the pipe already is put there again. */
void ml_lane_repair(struct ml_lane *lane);

/* Mark the lane busy: an event is about to be stamped. */
static inline void ml_lane_busy(struct ml_lane *lane) {
    atomic_store_explicit(
        (_Atomic uint64_t *)&lane->header->published,
        (lane->origin + (uintptr_t)lane->pos) | ML_PUBLISHED_BUSY,
        memory_order_relaxed
    );
    atomic_signal_fence(memory_order_seq_cst);
}

/* Room for one hot record. */
static inline uint8_t *ml_lane_room(struct ml_lane *lane) {
    if (ml_unlikely(lane->pos > lane->limit)) {
        ml_lane_flush(lane);
    }
    return lane->pos;
}

/* An event (ALLOC, FREE, RESIZE, CANCEL) is about to be published. Only the owner writes, and the
 * line is dirty anyway. */
static inline void ml_lane_count(struct ml_lane *lane) {
    lane->header->produced++;
}

/* Publish everything up to `pos`, all of it whole records. */
static inline void ml_lane_publish(struct ml_lane *lane, uint8_t *pos) {
    lane->pos = pos;
    atomic_store_explicit(
        (_Atomic uint64_t *)&lane->header->published,
        lane->origin + (uintptr_t)pos,
        memory_order_release
    );
}

/* Nobody waits for anybody: a lane that loses the lease notices on its next event. */
static inline uint64_t ml_lease_holder(void) {
    return __atomic_load_n(&ml_process.lease->holder, __ATOMIC_RELAXED);
}

/* A lane begins. */
void ml_lease_init(struct ml_lease *lease, uint32_t lane);

/* Another lane holds it while an event is being stamped: evict that one. Returns the clock, read
 * after that.
 */
uint64_t ml_lease_evict(uint64_t self);

/* The stamp of an event of `lane`. Also does what is due: try to take the lease, prolong it, or
 * notice its loss. */
ML_HOT uint64_t ml_lease_step(struct ml_lane *lane);

/* The stamp of the lane's next event. A lane's times never fall, even on a machine whose clocks
 * differ slightly. */
static inline uint64_t ml_lane_stamp(struct ml_lane *lane) {
    uint64_t now = ml_process_ticks();
    atomic_signal_fence(memory_order_seq_cst); /* the lease's holder is read behind it */
    const uint64_t holder = ml_lease_holder();
    if (ml_unlikely(holder != 0 && holder != lane->lease.self)) {
        now = ml_lease_evict(lane->lease.self);
    }
    if (ml_unlikely(now < lane->clamp)) {
        now = lane->clamp;
    }
    lane->clamp = now;
    return now;
}

/* The time of a hot record, behind its op: the last stamp again while the lane holds the lease. */
static inline uint8_t *ml_lane_put_time(struct ml_lane *lane, uint8_t *pos) {
    struct ml_lease *lease = &lane->lease;
    if (ml_likely(lease->again != 0 && ml_lease_holder() == lease->self)) {
        lease->again--;
        return ml_put_time_again(pos);
    }
    const uint64_t now =
        ml_unlikely(--lease->wait == 0) ? ml_lease_step(lane) : ml_lane_stamp(lane);
    return ml_put_time(pos, &lane->state, now);
}

/* One record of any kind, published; flushes first where it does not fit. Not for hot records. */
void ml_lane_record(struct ml_lane *lane, const struct ml_event *event);

#endif
