/* Numbers by chance that are the same each time. Room: tests. Context: any; pure. */
#ifndef MEMLOG_TESTS_HOST_MILL_DICE_H
#define MEMLOG_TESTS_HOST_MILL_DICE_H

#include <math.h>
#include <stdint.h>

/* Source: SplitMix64's finalizer, Steele, Lea and Flood 2014. */
static inline uint64_t dice_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

static inline uint64_t dice_next(uint64_t *state) {
    *state = dice_mix(*state);
    return *state;
}

/* From 0, below 1. */
static inline double dice_share(uint64_t *state) {
    return (double)(dice_next(state) >> 11) * 0x1p-53;
}

/* Normal, by Box and Muller. */
static inline double dice_normal(uint64_t *state) {
    const double two_pi = 6.283185307179586;
    const double one = 1 - dice_share(state);
    return sqrt(-2 * log(one)) * cos(two_pi * dice_share(state));
}

/* A factor whose logarithm is normal, with a mean of 1. */
static inline double dice_factor(uint64_t *state, double deviation) {
    return exp(deviation * dice_normal(state) - deviation * deviation / 2);
}

#endif
