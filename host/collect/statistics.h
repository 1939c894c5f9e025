/* Whether two builds differ, of samples of both. Room: host. Context: any; pure.
 *
 * One rule: no verdict without enough dumps. Many stacks are compared at once, so a verdict is by
 * q, the share of false ones among those called different (Benjamini and Hochberg), not by p. */
#ifndef MEMLOG_HOST_COLLECT_STATISTICS_H
#define MEMLOG_HOST_COLLECT_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fewer dumps a side give no verdict. Of one to three a z of 90 was seen by chance. */
enum { ML_STATISTICS_LEAST = 20 };

/* Dumps of one side. A dump without the stack counts as 0. */
struct ml_side {
    uint64_t count;
    double sum, squares;
};

struct ml_difference {
    double mean_before, mean_after;
    double z, p;
    double q; /* by ml_statistics_adjust */
};

/* The two means, and z of their difference. Without a spread on either side z is 0 for equal means,
 * else 1000. */
struct ml_difference ml_statistics_compare(struct ml_side before, struct ml_side after);

/* Set each q from all p of the list. Its order stays. False: no memory. */
bool ml_statistics_adjust(struct ml_difference *differences, size_t count);

/* Half the width of the 95 % interval of a mean. */
double ml_statistics_interval(struct ml_side side);

#endif
