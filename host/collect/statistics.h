/* Whether two builds differ, of samples of both. Room: host. Context: any; pure.
 *
 * One rule: no verdict without enough dumps. Many stacks are compared at once, so a verdict is by
 * q, the share of false ones among those called different (Benjamini and Hochberg), not by p.
 *
 * What is counted must not depend on one another. Dumps of one machine do: what it works on is in
 * all of them. So whoever has enough machines counts each once, with the mean of its dumps. */
#ifndef MEMLOG_HOST_COLLECT_STATISTICS_H
#define MEMLOG_HOST_COLLECT_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fewer dumps a side give no verdict. Of one to three a z of 90 was seen by chance. */
enum { ML_STATISTICS_LEAST = 20 };

/* A stack is called different below this q. Equal builds are compared each hour, so one of a
 * thousand such comparisons, and not of twenty, may call anything different. */
#define ML_STATISTICS_Q 0.001

/* Machines, or dumps, of one side. One without the stack counts as 0. */
struct ml_side {
    uint64_t count;
    double sum, squares;
};

struct ml_difference {
    double mean_before, mean_after;
    double z, p;
    double q; /* by ml_statistics_adjust */
};

/* The two means, and z of their difference: how many standard deviations of a normal distribution
 * are as unlikely. It is the smaller one of two: by each side's own spread, which is right when
 * they differ, and by that of both together, which is right when they do not. By its own spread
 * alone a small side that has missed the rare large values, or the whole of a rare stack, would be
 * called different. Without a spread on either side z is 0 for equal means, else 1000. */
struct ml_difference ml_statistics_compare(struct ml_side before, struct ml_side after);

/* Set each q from all p of the list. Its order stays. False: no memory. */
bool ml_statistics_adjust(struct ml_difference *differences, size_t count);

/* Half the width of the 95 % interval of a mean. */
double ml_statistics_interval(struct ml_side side);

#endif
