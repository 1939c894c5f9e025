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
 * CLOCK_MONOTONIC may answer two processors with the same nanosecond: so do virtual machines whose
 * clock must not run backwards. A stamp by it is therefore later than the last one of any lane,
 * which stands in the page. The TSC is the clock only where the kernel itself trusts it.
 *
 * Any process that shares the page can write it. A hostile one makes others read the clock more
 * often, or puts events of different processes into a slightly wrong order. The page never yields
 * an address, a size or a count. */
#ifndef MEMLOG_IPC_WIRE_LEASE_H
#define MEMLOG_IPC_WIRE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#define ML_LEASE_MAGIC UINT64_C(0x31736c6d656d6d6c)

enum {
    ML_LEASE_BYTES = 4096,
    ML_LEASE_EVENTS = 32,           /* that share one stamp, at most */
    ML_LEASE_PROOF_TICKS = 1 << 16, /* of either clock: 20 to 66 us */
    ML_LEASE_LANE_BITS = 16,
    ML_LEASE_AHEAD_MAX_NS = 1000000 /* a last stamp that is further ahead is none */
};

struct ml_lease_page {
    uint64_t magic;
    _Alignas(64) uint64_t holder;  /* ml_lease_self of a lane; 0: none */
    _Alignas(64) uint64_t numbers; /* given out to processes */
    _Alignas(64) uint64_t last_ns; /* the last stamp by CLOCK_MONOTONIC */
};

/* The stamp of an event by CLOCK_MONOTONIC, now `now_ns`: later than all stamps before. */
static inline uint64_t ml_lease_stamp(struct ml_lease_page *page, uint64_t now_ns) {
    uint64_t last_ns = __atomic_load_n(&page->last_ns, __ATOMIC_RELAXED);
    uint64_t stamp_ns = 0;
    do {
        stamp_ns =
            last_ns >= now_ns && last_ns - now_ns < ML_LEASE_AHEAD_MAX_NS ? last_ns + 1 : now_ns;
    } while (!__atomic_compare_exchange_n(
        &page->last_ns, &last_ns, stamp_ns, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED
    ));
    return stamp_ns;
}

/* What a lane puts into `holder`; a process takes its number, from 1 on, when it starts. */
static inline uint64_t ml_lease_self(uint64_t process_number, uint32_t lane) {
    return process_number << ML_LEASE_LANE_BITS | lane;
}

#endif
