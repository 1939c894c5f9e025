/* Call chains with many shapes. Room: tools (bench).
 *
 * One rule: every level is a frame of its own, and every third is reached by one of two calls, as
 * one bit of `path` says; so two paths part at any depth, and depth 45 has 2^15 of them. */
#ifndef MEMLOG_BENCH_DESCEND_H
#define MEMLOG_BENCH_DESCEND_H

#include <stdint.h>

struct ml_descent {
    void (*leaf)(void *context);
    void *context;
    uint32_t path; /* bit i: the way taken at the i-th fork, counted from the leaf */
};

/* Call `leaf` with `depth` frames of this module in between. */
void ml_descend(const struct ml_descent *descent, unsigned depth);

#endif
