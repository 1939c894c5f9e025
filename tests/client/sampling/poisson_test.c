#include "client/sampling/poisson.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

/* Every number here comes from a fixed seed, so that a bound that holds once holds for ever. The
 * bounds are those of the distributions: five standard deviations for means, and 1.95 / sqrt(n),
 * the 0.1 % point of Kolmogorov and Smirnov, for whole distributions. */

enum { DRAWS = 1 << 18 };

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The largest distance between the drawn distribution and the true one. */
static double ks_distance(uint64_t *draws, double interval) {
    double largest = 0;
    qsort(draws, DRAWS, sizeof(*draws), compare);
    for (size_t i = 0; i < DRAWS; i++) {
        if (i + 1 < DRAWS && draws[i + 1] == draws[i]) {
            continue;
        }
        /* P(distance <= d) = 1 - P(d + 1 bytes are free) */
        const double truth = -expm1(-((double)draws[i] + 1) / interval);
        largest = fmax(largest, fabs((double)(i + 1) / DRAWS - truth));
    }
    return largest;
}

START_TEST(distances_are_exponential) {
    static const uint64_t intervals[] = {2, 3, 100, 4096, 524288, UINT64_C(1) << 32};
    const uint64_t interval = intervals[_i];
    uint64_t *draws = calloc(DRAWS, sizeof(*draws));
    uint64_t state = 42;
    double sum = 0;
    ck_assert_ptr_nonnull(draws);
    for (size_t i = 0; i < DRAWS; i++) {
        draws[i] = ml_poisson_distance(&state, interval);
        sum += (double)draws[i];
    }
    ck_assert_double_lt(ks_distance(draws, (double)interval), 1.95 / sqrt(DRAWS));
    const double mean = 1 / expm1(1 / (double)interval);
    ck_assert_double_eq_tol(sum / DRAWS / mean, 1, 5 * sqrt(1 + 1 / mean) / sqrt(DRAWS));
    free(draws);
}
END_TEST

/* A distance tells nothing of the next: chance of the other being long too, as if alone. */
START_TEST(distances_do_not_depend_on_each_other) {
    uint64_t state = 7;
    uint64_t both = 0;
    uint64_t first = ml_poisson_distance(&state, 4096);
    for (size_t i = 0; i < DRAWS; i++) {
        const uint64_t second = ml_poisson_distance(&state, 4096);
        both += first >= 4096 && second >= 4096;
        first = second;
    }
    const double truth = exp(-2);
    const double deviation = sqrt(truth * (1 - truth) / DRAWS);
    ck_assert_double_eq_tol((double)both / DRAWS, truth, 6 * deviation);
}
END_TEST

static const struct {
    uint64_t interval, size;
} weighed[] = {
    {2, 0},
    {2, 1},
    {100, 0},
    {100, 1},
    {100, 99},
    {4096, 0},
    {4096, 24},
    {4096, 1000},
    {4096, 4095},
    {524288, 16},
    {524288, 262144},
    {UINT64_C(1) << 32, 0},
    {UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1},
};

/* Rounding at random leaves the mean where it is: to within its own spread of at most a half. */
START_TEST(weights_have_the_size_and_one_over_the_chance_as_their_means) {
    const uint64_t interval = weighed[_i].interval;
    const uint64_t size = weighed[_i].size;
    const double chance = -expm1(-((double)size + 1) / (double)interval);
    const double most = 5 * 0.5 / sqrt(DRAWS);
    uint64_t state = 1;
    struct ml_poisson_memo memo = {.inverses = {{0}}};
    double blocks = 0;
    double bytes = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        const struct ml_poisson_weights weights = ml_poisson_weigh(&state, &memo, interval, size);
        ck_assert_double_lt(fabs((double)weights.blocks - 1 / chance), 1 + 1e-6);
        ck_assert_uint_ge(weights.blocks, 1);
        ck_assert_uint_ge(weights.bytes, size);
        blocks += (double)weights.blocks;
        bytes += (double)weights.bytes;
    }
    const double true_blocks = 1 / chance;
    const double true_bytes = (double)size / chance;
    /* The numbers are summed in doubles: 2^-40 of them is for that. */
    ck_assert_double_eq_tol(blocks / DRAWS, true_blocks, most + true_blocks * 1e-12);
    ck_assert_double_eq_tol(bytes / DRAWS, true_bytes, most + true_bytes * 1e-12);
}
END_TEST

/* Sizes that fall on one place of the memo, and intervals that change, do not get each other's. */
START_TEST(what_is_remembered_is_what_is_worked_out) {
    struct ml_poisson_memo memo = {.inverses = {{0}}};
    uint64_t sizes = 1;
    for (int i = 0; i < 100000; i++) {
        const uint64_t interval = i % 7 == 0 ? 4096 : 512;
        const uint64_t size = ml_poisson_random(&sizes) % 300;
        uint64_t state = (uint64_t)i;
        uint64_t other = state;
        const struct ml_poisson_inverse inverse = ml_poisson_inverse_of(interval, size);
        const struct ml_poisson_weights a = ml_poisson_weigh(&state, &memo, interval, size);
        const struct ml_poisson_weights b = ml_poisson_draw(&other, &inverse);
        ck_assert_uint_eq(a.bytes, b.bytes);
        ck_assert_uint_eq(a.blocks, b.blocks);
    }
}
END_TEST

/* What it is all for: sums of weights, and what they say of their own spread. */
struct estimate {
    double bytes, blocks, bytes_variance, blocks_variance;
};

/* The walk of client/recording/sampler.c over `count` blocks of random sizes, with weights that are
 * wrong by `bias`. */
static struct estimate walk(uint64_t *state, uint64_t interval, int count, double bias) {
    struct estimate sum = {0, 0, 0, 0};
    struct ml_poisson_memo memo = {.inverses = {{0}}};
    uint64_t way = ml_poisson_distance(state, interval);
    for (int i = 0; i < count; i++) {
        const uint64_t size = (uint64_t)i * 37 % (interval * 3 / 2);
        double bytes = (double)size;
        double blocks = 1;
        if (size < interval && way > size) {
            way -= size + 1;
            continue;
        }
        if (size < interval) {
            const struct ml_poisson_weights weights =
                ml_poisson_weigh(state, &memo, interval, size);
            bytes = (double)weights.bytes * bias;
            blocks = (double)weights.blocks * bias;
            way = ml_poisson_distance(state, interval);
        }
        sum.bytes += bytes;
        sum.blocks += blocks;
        sum.bytes_variance += bytes * (bytes - (double)size);
        sum.blocks_variance += blocks * (blocks - 1);
    }
    return sum;
}

enum { RUNS = 1500, BLOCKS = 2000 };

struct verdict {
    double bytes_z, blocks_z;           /* how far the mean is off, in its standard deviations */
    double bytes_spread, blocks_spread; /* true variance over the estimated one */
};

static struct verdict judge(double bias) {
    const uint64_t interval = 1000;
    double true_bytes = 0;
    double squares[2] = {0, 0};
    struct estimate mean = {0, 0, 0, 0};
    uint64_t state = 2026;
    for (int i = 0; i < BLOCKS; i++) {
        true_bytes += (double)((uint64_t)i * 37 % 1500);
    }
    for (int run = 0; run < RUNS; run++) {
        const struct estimate one = walk(&state, interval, BLOCKS, bias);
        squares[0] += (one.bytes - true_bytes) * (one.bytes - true_bytes) / RUNS;
        squares[1] += (one.blocks - BLOCKS) * (one.blocks - BLOCKS) / RUNS;
        mean.bytes += one.bytes / RUNS;
        mean.blocks += one.blocks / RUNS;
        mean.bytes_variance += one.bytes_variance / RUNS;
        mean.blocks_variance += one.blocks_variance / RUNS;
    }
    return (struct verdict){
        .bytes_z = (mean.bytes - true_bytes) / sqrt(squares[0] / RUNS),
        .blocks_z = (mean.blocks - BLOCKS) / sqrt(squares[1] / RUNS),
        .bytes_spread = squares[0] / mean.bytes_variance,
        .blocks_spread = squares[1] / mean.blocks_variance,
    };
}

START_TEST(sums_of_weights_are_unbiased_and_know_their_own_spread) {
    const struct verdict right = judge(1);
    ck_assert_double_lt(fabs(right.bytes_z), 4);
    ck_assert_double_lt(fabs(right.blocks_z), 4);
    /* The variance of a variance over so many runs: 2 / RUNS, for something near to normal. */
    ck_assert_double_eq_tol(right.bytes_spread, 1, 5 * sqrt(2.0 / RUNS));
    ck_assert_double_eq_tol(right.blocks_spread, 1, 5 * sqrt(2.0 / RUNS));
}
END_TEST

/* The oracle above is sharp enough to see one percent. */
START_TEST(weights_that_are_wrong_by_a_hundredth_are_noticed) {
    const struct verdict more = judge(1.01);
    const struct verdict less = judge(0.99);
    ck_assert_double_gt(more.bytes_z, 6);
    ck_assert_double_lt(less.bytes_z, -6);
    ck_assert_double_gt(more.blocks_z, 4);
    ck_assert_double_lt(less.blocks_z, -4);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("poisson");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, distances_are_exponential, 0, 6);
    tcase_add_test(tcase, distances_do_not_depend_on_each_other);
    tcase_add_loop_test(
        tcase,
        weights_have_the_size_and_one_over_the_chance_as_their_means,
        0,
        (int)(sizeof(weighed) / sizeof(weighed[0]))
    );
    tcase_add_test(tcase, sums_of_weights_are_unbiased_and_know_their_own_spread);
    tcase_add_test(tcase, what_is_remembered_is_what_is_worked_out);
    tcase_add_test(tcase, weights_that_are_wrong_by_a_hundredth_are_noticed);
    return run_suite("client/poisson", tcase);
}
