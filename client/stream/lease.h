/* Holding the lease, and putting others out: ipc/wire/lease.h says why. Room: client (private).
 * Context: the malloc path, where an event is stamped.
 *
 * One rule: nobody waits for anybody; who is put out finds it out by itself. */
#ifndef MEMLOG_CLIENT_STREAM_LEASE_H
#define MEMLOG_CLIENT_STREAM_LEASE_H

#include <stdint.h>

#include "client/state/process.h"

struct ml_lane;

enum {
    ML_LEASE_PAUSE_MIN = 64, /* events of a lane before it tries to get the lease ... */
    ML_LEASE_PAUSE_MAX = 1 << 20,
    ML_LEASE_WORTH_EVENTS = 4096 /* ... twice as many after each time that it had it for fewer */
};

/* A lane's part; all 0 but for `self` and `wait` when the lane is first used. */
struct ml_lease {
    uint64_t self;  /* what stands in `holder` while the lane has it */
    uint32_t again; /* events that may still bear the lane's last stamp */
    uint32_t wait;  /* events until ml_lease_step, >= 1; counted while `again` is 0 or in vain */
    /* Slower ways read the rest. */
    uint32_t pause;          /* `wait`, when nothing is held */
    uint64_t since_ticks;    /* it has, or had, the lease since then; 0: it is not so */
    uint64_t since_produced; /* events of the lane by then */
};

static inline uint64_t ml_lease_holder(void) {
    return __atomic_load_n(&ml_process.lease->holder, __ATOMIC_RELAXED);
}

/* A lane begins. */
void ml_lease_init(struct ml_lease *lease, uint32_t lane);

/* Somebody else holds it, as an event was being stamped: put him out. The clock, read behind that.
 */
uint64_t ml_lease_evict(uint64_t self);

/* The stamp of an event of `lane`; and what is due with the lease: to try for it, to go on holding
 * it, or to see that it is gone. */
ML_HOT uint64_t ml_lease_step(struct ml_lane *lane);

#endif
