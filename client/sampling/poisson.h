/* A Poisson process in integers: the distance to the next sample, and the weight of a sampled
 * block. Room: client (private). Context: any; no state but the caller's.
 *
 * One rule: no floating point: it changes the program's exception flags, and traps if the program
 * enabled that. */
#ifndef MEMLOG_CLIENT_SAMPLING_POISSON_H
#define MEMLOG_CLIENT_SAMPLING_POISSON_H

#include <stdint.h>

/* 64 random bits (splitmix64); any state will do. */
uint64_t ml_poisson_random(uint64_t *state);

/* Bytes before the next point of a Poisson process: the integer part of an exponential random
 * number of mean `interval_bytes`, so that n bytes hold no point with probability exp(-n /
 * interval). */
uint64_t ml_poisson_distance(uint64_t *state, uint64_t interval_bytes);

/* The weight of a recorded block. */
struct ml_poisson_weights {
    uint64_t bytes, blocks;
};

/* Of a block of size_bytes < interval_bytes <= ML_SAMPLING_MAX_BYTES that was recorded with
 * probability p = 1 - exp(-(size_bytes + 1) / interval_bytes): 1 / p. */
struct ml_poisson_inverse {
    uint64_t interval_bytes, size_bytes;
    uint64_t whole;
    uint64_t part; /* behind the point, in 64 bits */
};
struct ml_poisson_inverse ml_poisson_inverse_of(uint64_t interval_bytes, uint64_t size_bytes);

/* size / p and 1 / p, each rounded up or down at random with exactly this mean. */
struct ml_poisson_weights
ml_poisson_draw(uint64_t *state, const struct ml_poisson_inverse *inverse);

/* A cache, since programs repeat the same sizes; all zero at first. */
enum { ML_POISSON_MEMO_SHIFT = 8 };
struct ml_poisson_memo {
    struct ml_poisson_inverse inverses[1 << ML_POISSON_MEMO_SHIFT];
};

/* Both in one. */
struct ml_poisson_weights ml_poisson_weigh(
    uint64_t *state, struct ml_poisson_memo *memo, uint64_t interval_bytes, uint64_t size_bytes
);

#endif
