#include "client/sampling/poisson.h"

#include <stdbool.h>
#include <stddef.h>

/* The whole in 63 fractional bits. */
#define ONE (UINT64_C(1) << 63)

__extension__ typedef unsigned __int128 wide;

uint64_t ml_poisson_random(uint64_t *state) {
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = *state;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* Von Neumann's exponential random number, by comparisons alone. Of uniform numbers u1 > u2 > ...
 * the first that does not fall ends a run. A run has odd length with probability exp(-u1), and then
 * u1 is the fraction; each even run adds 1. */
uint64_t ml_poisson_distance(uint64_t *state, uint64_t interval_bytes) {
    uint64_t whole_bytes = 0;
    for (;;) {
        const uint64_t first = ml_poisson_random(state);
        uint64_t last = first;
        bool odd = true;
        for (;;) {
            const uint64_t next = ml_poisson_random(state);
            if (next >= last) {
                break;
            }
            last = next;
            odd = !odd;
        }
        if (odd) {
            return whole_bytes + (uint64_t)((wide)first * interval_bytes >> 64);
        }
        whole_bytes += interval_bytes;
    }
}

/* (1 - exp(-x)) / x for x in (0, 1], both in 63 fractional bits: 1 - x/2 (1 - x/3 (1 - x/4 (...))).
 * The first term left out is below 1/19!, 2^-56. */
static uint64_t mean_survival(uint64_t x) {
#define SHARE(n) (ONE / (n))
    static const uint64_t shares[] = {
        SHARE(2),
        SHARE(3),
        SHARE(4),
        SHARE(5),
        SHARE(6),
        SHARE(7),
        SHARE(8),
        SHARE(9),
        SHARE(10),
        SHARE(11),
        SHARE(12),
        SHARE(13),
        SHARE(14),
        SHARE(15),
        SHARE(16),
        SHARE(17),
        SHARE(18)};
#undef SHARE
    /* The smaller x, the fewer terms: x^n is below 2^-(n * zeros). */
    enum { TERMS = sizeof(shares) / sizeof(shares[0]), BITS = 56 };
    const unsigned zeros = (unsigned)__builtin_clzll(x);
    const size_t enough = BITS / (zeros + 2) + 2;
    uint64_t sum = ONE;
    for (size_t i = zeros > 0 && enough < TERMS ? enough : TERMS; i-- > 0;) {
        const uint64_t product = (uint64_t)((wide)x * sum >> 63);
        sum = ONE - (uint64_t)((wide)product * shares[i] >> 63);
    }
    return sum;
}

struct ml_poisson_inverse ml_poisson_inverse_of(uint64_t interval_bytes, uint64_t size_bytes) {
    const uint64_t charged_bytes = size_bytes + 1;
    const uint64_t x = (uint64_t)(((wide)charged_bytes << 63) / interval_bytes);
    /* The probability p is x * survival; so 1 / p is interval / (charged * survival). */
    const wide denominator = (wide)charged_bytes * mean_survival(x);
    const wide numerator = (wide)interval_bytes << 63;
    const uint64_t whole = (uint64_t)(numerator / denominator);
    /* 64 bits of what is left; of the denominator as many. */
    const uint64_t high = (uint64_t)(denominator >> 64);
    const unsigned shift = high == 0 ? 0 : 64 - (unsigned)__builtin_clzll(high);
    const uint64_t rest = (uint64_t)((numerator - whole * denominator) >> shift);
    const uint64_t divisor = (uint64_t)(denominator >> shift);
    return (struct ml_poisson_inverse){
        .interval_bytes = interval_bytes,
        .size_bytes = size_bytes,
        .whole = whole,
        .part = rest < divisor ? (uint64_t)(((wide)rest << 64) / divisor) : UINT64_MAX,
    };
}

struct ml_poisson_weights
ml_poisson_draw(uint64_t *state, const struct ml_poisson_inverse *inverse) {
    const wide part = (wide)inverse->size_bytes * inverse->part;
    const uint64_t bytes = inverse->size_bytes * inverse->whole + (uint64_t)(part >> 64);
    return (struct ml_poisson_weights){
        .bytes = bytes + (ml_poisson_random(state) < (uint64_t)part ? 1 : 0),
        .blocks = inverse->whole + (ml_poisson_random(state) < inverse->part ? 1 : 0),
    };
}

struct ml_poisson_weights ml_poisson_weigh(
    uint64_t *state, struct ml_poisson_memo *memo, uint64_t interval_bytes, uint64_t size_bytes
) {
    struct ml_poisson_inverse *inverse =
        &memo->inverses[size_bytes * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ML_POISSON_MEMO_SHIFT)];
    if (inverse->size_bytes != size_bytes || inverse->interval_bytes != interval_bytes) {
        *inverse = ml_poisson_inverse_of(interval_bytes, size_bytes);
    }
    return ml_poisson_draw(state, inverse);
}
