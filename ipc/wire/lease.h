/* The lease: the right of one lane to repeat its last time stamp. Room: ipc (:wire). Context: one
 * page that all profiled processes of a run map and write; forked children inherit it. The host
 * makes it and can only clear `holder`; the service does not have it.
 *
 * One rule: while a lane holds the lease no other lane of any process stamps an event.
 *
 * Reading the clock is a third of an event's cost. Stamps order events of different lanes where one
 * thread could have seen an effect of the other. While no other lane has stamped an event since
 * this lane read the clock, its own events need no new stamp: they are ordered by their place in
 * the lane.
 *
 *   A lane that has recorded for a while, and finds `holder` 0, puts itself there.
 *   ML_LEASE_PROOF_TICKS later it begins to read the clock for one event in ML_LEASE_EVENTS only.
 *   The others repeat the last stamp, as long as `holder` is still the lane.
 *
 *   A lane that stamps an event first reads the clock and then `holder`. If another lane holds the
 *   lease, it clears `holder` and reads the clock again. The host does the same when it stamps the
 *   start and the end of a process.
 *
 * Proof: let B stamp an event, and let A see any effect of it: a block handed over, memory that B
 * freed, a message. If B found A in `holder`, A sees the cleared `holder` before the effect, and
 * reads the clock. If B found `holder` empty, A took the lease later, and all stamps that A repeats
 * are later than B's. A processor may execute the read of `holder` before that of the clock, by
 * less than a microsecond; ML_LEASE_PROOF_TICKS covers that.
 *
 * Any process that shares the page can write it. A hostile one makes others read the clock more
 * often, or puts events of different processes into a slightly wrong order. The page never yields
 * an address, a size or a count. */
#ifndef MEMLOG_IPC_WIRE_LEASE_H
#define MEMLOG_IPC_WIRE_LEASE_H

#include <stdint.h>

#define ML_LEASE_MAGIC UINT64_C(0x31736c6d656d6d6c)

enum {
    ML_LEASE_BYTES = 4096,
    ML_LEASE_EVENTS = 32,           /* that share one stamp, at most */
    ML_LEASE_PROOF_TICKS = 1 << 16, /* of either clock: 20 to 66 us */
    ML_LEASE_LANE_BITS = 16
};

struct ml_lease_page {
    uint64_t magic;
    _Alignas(64) uint64_t holder;  /* ml_lease_self of a lane; 0: none */
    _Alignas(64) uint64_t numbers; /* given out to processes */
};

/* What a lane puts into `holder`; a process takes its number, from 1 on, when it starts. */
static inline uint64_t ml_lease_self(uint64_t process_number, uint32_t lane) {
    return process_number << ML_LEASE_LANE_BITS | lane;
}

#endif
