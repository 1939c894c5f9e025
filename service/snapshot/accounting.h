/* Where a process's events have gone. Room: service. Context: pure.
 *
 * One rule: `produced` is the client's own count, `received` the service's. An event between the
 * two was dropped for a reason that the client gave, or it is `unaccounted`: a fault of memlog or
 * of the client.
 *
 *   produced = received + in_flight + overrun + no_lane + nested + no_pipe + refused + unaccounted
 *
 * Events are ALLOC, FREE, RESIZE and CANCEL records. A client's counts are untrusted, so sums
 * saturate. */
#ifndef MEMLOG_SERVICE_SNAPSHOT_ACCOUNTING_H
#define MEMLOG_SERVICE_SNAPSHOT_ACCOUNTING_H

#include <stdbool.h>
#include <stdint.h>

struct ml_accounting {
    uint64_t produced;
    uint64_t received;
    uint64_t in_flight;   /* of a running process: on their way; of an ended one: begun by a thread
                             that was killed, at most one a thread */
    uint64_t overrun;     /* the pipe stayed full beyond the bound */
    uint64_t no_lane;     /* calls of threads that found no lane */
    uint64_t nested;      /* calls of a signal handler inside a signal handler inside the hook */
    uint64_t no_pipe;     /* the program had closed the pipe */
    uint64_t refused;     /* the service reads this stream no more */
    uint64_t unaccounted; /* 0, or something is wrong */
    bool balanced;        /* nothing is unaccounted, and no more was received than produced */
    /* Not losses: waits of the threads for room in the pipe. */
    uint64_t waits, waited_ns, longest_wait_ns;
    uint64_t stream_bytes; /* of all records received: events, nodes, modules, names */
};

/* What is known of a process. */
struct ml_accounting_facts {
    bool looked; /* its staging was read; else only `received` and the losses that it told are known
                  */
    bool ended;  /* ... and read to the end, after its end */
    bool refused;      /* its stream is read no more */
    uint64_t produced; /* of all lanes */
    uint64_t received; /* decoded */
    uint64_t overrun;  /* of all lanes, or by LOSS records if that is more */
    uint64_t no_lane;  /* likewise */
    uint64_t nested;   /* likewise */
    uint64_t no_pipe;
    uint32_t busy_lanes; /* lanes that stand between stamp and publishing */
    uint64_t waits, waited_ns, longest_wait_ns;
    uint64_t stream_bytes;
};

struct ml_accounting ml_accounting_of(const struct ml_accounting_facts *facts);

/* All losses: the sum of the reasons, saturating. Events in flight are not lost. */
uint64_t ml_accounting_lost(const struct ml_accounting *accounting);

/* For sums over lanes and processes. */
static inline void ml_add_saturating(uint64_t *sum, uint64_t value) {
    if (__builtin_add_overflow(*sum, value, sum)) {
        *sum = UINT64_MAX;
    }
}

#endif
