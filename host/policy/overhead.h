/* --overhead=PERCENT: which sampling interval keeps a process's recording within what was promised.
 * Room: host. Context: pure.
 *
 * One rule: a process that costs more than promised is sampled coarser at once, and finer only so
 * far that what it cost so far would still be within the promise.
 *
 * Cost is a share of the processor time that the process takes itself. One part grows with what is
 * recorded: the interval steers it. The other is of the calls that are passed over, and no interval
 * changes it. Both are as the process's client says. A client that lies has an interval that does
 * not fit it, between the two bounds, and nothing else.
 *
 * Where those calls alone take what was promised, recording still gets a sixteenth of it: a longer
 * interval would show nothing, and keep nothing.
 *
 * Why it settles: recording costs at most in inverse proportion to the interval. A step down needs
 * room for that much, so it leads to no step up while the program stays as it is; a step up leads
 * into the band between the two bounds, where there is no step. */
#ifndef MEMLOG_HOST_POLICY_OVERHEAD_H
#define MEMLOG_HOST_POLICY_OVERHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A share of 1, in millionths. */
enum { ML_PPM = 1000000 };

#define ML_OVERHEAD_START_BYTES (UINT64_C(512) << 10) /* costs 1 % where 10 GB/s are allocated */
#define ML_OVERHEAD_MOST_BYTES (UINT64_C(64) << 20)   /* beyond it, a sample says little */

/* What was promised. */
struct ml_overhead_rule {
    uint32_t promised_ppm; /* 0: nothing */
    uint64_t least_bytes;  /* the finest interval */
};

/* What a process's counters and clock were at one moment. */
struct ml_overhead_reading {
    uint64_t at_ns;                                        /* CLOCK_MONOTONIC */
    uint64_t ticks;                                        /* the same, by the tree's clock */
    uint64_t cpu_ns;                                       /* that the process has taken */
    uint64_t recording_ticks, passing_ticks, passed_calls; /* by its client's word */
};

struct ml_overhead_cost {
    uint32_t recording_ppm, passing_ppm;
};

/* Of a process; all 0: nothing was measured yet. */
struct ml_overhead {
    uint32_t promised_ppm; /* 0: nothing is measured */
    bool has_begun;
    struct ml_overhead_reading first, last, slow; /* `slow`: since when it may be sampled finer */
    uint64_t shortest_bytes, longest_bytes;       /* intervals that held; 0: none */
    struct ml_overhead_cost whole;                /* since the first reading */
    struct ml_overhead_cost recent;               /* between the last two */
    uint64_t recent_calls_per_s;                  /* passed over, in each second of a processor */
    bool is_measured;                             /* `whole` and `recent` are */
    bool is_broken; /* it costs more than promised, now and in all, and no interval changes that */
    /* Its owner's. */
    uint64_t interval_bytes; /* that the governor has set; 0: none */
    uint64_t least_bytes;    /* for another reason no interval may be shorter; 0: any */
    bool is_noted;           /* people were told that it is broken */
};

/* The cost of the time between two readings. Counters that fall, or say more than there was time,
 * count as 0 or as all of it. */
struct ml_overhead_cost
ml_overhead_cost(const struct ml_overhead_reading *from, const struct ml_overhead_reading *to);

static inline uint32_t ml_overhead_sum(struct ml_overhead_cost cost) {
    return cost.recording_ppm + cost.passing_ppm;
}

/* The interval to sample at from now on, while it is `interval_bytes`; the same: no change. */
uint64_t ml_overhead_step(
    struct ml_overhead *overhead,
    const struct ml_overhead_rule *rule,
    uint64_t interval_bytes,
    const struct ml_overhead_reading *now
);

/* The interval to begin with. */
uint64_t ml_overhead_start(const struct ml_overhead_rule *rule);

enum { ML_OVERHEAD_TEXT_BYTES = 192 };

/* "0.6 %", "0.04 %", "12 %". */
enum { ML_OVERHEAD_PERCENT_BYTES = 16 };
const char *ml_overhead_percent(uint32_t ppm, char text[ML_OVERHEAD_PERCENT_BYTES]);

/* Why the promise is not kept; "": it is, or nothing is known. */
const char *ml_overhead_trouble(
    const struct ml_overhead *overhead,
    const struct ml_overhead_rule *rule,
    char text[ML_OVERHEAD_TEXT_BYTES]
);

/* "1%", "0.5%": a share of at most 50 %, in millionths. False: it is none. */
bool ml_overhead_read(const char *text, uint32_t *out_ppm);

#endif
