/* The lease: who may stamp an event with the stamp of the one before. Room: ipc (:wire). Context:
 * one page that all profiled processes of a run map and write, forked children the one that they
 * inherit; the host makes it and has one word to say in it, the service does not have it.
 *
 * One rule: while a lane holds the lease no other lane of any process stamps an event.
 *
 * Reading the clock is a third of what an event costs. A stamp has to say one thing: which of two
 * events of different lanes came first, where one thread could have known of the other's. While
 * nobody else has stamped anything since this lane read the clock, its own events need no new
 * stamp: their order is that in which they lie in the lane.
 *
 *   A lane that has recorded for a while, and finds `holder` 0, puts itself there. From
 *   ML_LEASE_PROOF_TICKS after that on it reads the clock for one event in ML_LEASE_EVENTS; the
 *   others bear the stamp of the last one, as long as `holder` still is the lane.
 *
 *   Whoever stamps an event looks at `holder` behind reading the clock. Another lane there is put
 *   out (`holder` becomes 0), and then the clock is read again. So does the host, which stamps
 *   where a process begins and ends.
 *
 * So let B stamp something, and let A see any trace of it: a block handed over, memory that B
 * freed, a message. Either B found A there: then A sees that it has been put out before it sees the
 * trace, and reads the clock. Or B found nobody: then A came later, and all stamps that A ever
 * repeats are later than B's. A processor may look at `holder` before it reads the clock, by what
 * it holds in flight: less than a microsecond; for that A waits ML_LEASE_PROOF_TICKS.
 *
 * The page is the word of all who share it. One that lies makes others read the clock more often,
 * or has them put events into a slightly wrong order among processes; it is never an address, a
 * size or a count. */
#ifndef MEMLOG_IPC_WIRE_LEASE_H
#define MEMLOG_IPC_WIRE_LEASE_H

#include <stdint.h>

#define ML_LEASE_MAGIC UINT64_C(0x31736c6d656d6d6c)

enum {
    ML_LEASE_BYTES = 4096,
    ML_LEASE_EVENTS = 32,           /* that bear one stamp, at most */
    ML_LEASE_PROOF_TICKS = 1 << 16, /* of either clock: 20 to 66 us */
    ML_LEASE_LANE_BITS = 16
};

struct ml_lease_page {
    uint64_t magic;
    _Alignas(64) uint64_t holder;  /* ml_lease_self of a lane; 0: nobody */
    _Alignas(64) uint64_t numbers; /* given out to processes */
};

/* What a lane puts into `holder`; a process takes its number, from 1 on, when it starts. */
static inline uint64_t ml_lease_self(uint64_t process_number, uint32_t lane) {
    return process_number << ML_LEASE_LANE_BITS | lane;
}

#endif
