/* Numbers that look random and are the same in every run (xorshift64*). Room: tools (bench). */
#ifndef MEMLOG_BENCH_RANDOM_H
#define MEMLOG_BENCH_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t ml_bench_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dULL;
}

/* 16 to 271 bytes: what most blocks of real programs are. */
static inline size_t ml_bench_size(uint64_t random) {
    return 16 + (size_t)(random >> 56);
}

#endif
