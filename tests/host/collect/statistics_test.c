/* Differences between samples whose law is known. Random ones have fixed seeds. */
#include "host/collect/statistics.h"

#include <math.h>

#include <check.h>

#include "tests/suite.h"

static uint64_t seed;

static double uniform(void) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (double)(seed >> 11) * 0x1p-53;
}

/* Nearly normal, with a standard deviation of 1. */
static double noise(void) {
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += uniform();
    }
    return sum;
}

static struct ml_side side_of(uint64_t count, double mean, double spread) {
    struct ml_side side = {.count = count};

    for (uint64_t i = 0; i < count; i++) {
        const double value = mean + spread * noise();
        side.sum += value;
        side.squares += value * value;
    }
    return side;
}

START_TEST(a_difference_is_found_with_its_size) {
    const struct ml_difference found =
        ml_statistics_compare(side_of(400, 10, 2), side_of(400, 11, 2));

    ck_assert(fabs(found.mean_after - found.mean_before - 1) < 0.5);
    ck_assert(found.z > 4 && found.z < 11);
    ck_assert(found.p < 1e-4);
}
END_TEST

START_TEST(too_few_dumps_give_no_verdict) {
    const struct ml_difference few =
        ml_statistics_compare(side_of(ML_STATISTICS_LEAST - 1, 1, 0.1), side_of(1000, 100, 0.1));

    ck_assert(few.z == 0 && few.p == 1 && few.q == 1);
}
END_TEST

START_TEST(sides_without_a_spread_are_equal_or_not) {
    const struct ml_side one = {.count = 30, .sum = 30, .squares = 30};
    const struct ml_side two = {.count = 30, .sum = 60, .squares = 120};

    ck_assert(ml_statistics_compare(one, one).z == 0);
    ck_assert(ml_statistics_compare(one, two).z > 100);
    ck_assert(ml_statistics_compare(two, one).z < -100);
    ck_assert(ml_statistics_compare((struct ml_side){.count = 0}, one).z == 0);
}
END_TEST

/* Two hundred comparisons of equal things, a hundred times: with q below 0.05 hardly one of a
 * hundred calls anything different. By p alone ten of each two hundred would be called so. */
START_TEST(equal_builds_are_called_equal) {
    enum { STACKS = 200, TRIALS = 100 };
    unsigned by_q = 0;
    unsigned by_p = 0;

    seed = 1;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct ml_difference all[STACKS];
        bool any = false;
        for (int i = 0; i < STACKS; i++) {
            all[i] = ml_statistics_compare(side_of(40, i, 1), side_of(40, i, 1));
            by_p += all[i].p < 0.05;
        }
        ck_assert(ml_statistics_adjust(all, STACKS));
        for (int i = 0; i < STACKS; i++) {
            any = any || all[i].q < 0.05;
        }
        by_q += any;
    }
    ck_assert_uint_le(by_q, 12);
    ck_assert_uint_gt(by_p, TRIALS * STACKS / 40);
}
END_TEST

START_TEST(q_is_that_of_benjamini_and_hochberg) {
    const double p[] = {0.01, 0.04, 0.03, 0.005, 1};
    const double q[] = {0.025, 0.05, 0.05, 0.025, 1};
    struct ml_difference all[5];

    for (int i = 0; i < 5; i++) {
        all[i] = (struct ml_difference){.p = p[i]};
    }
    ck_assert(ml_statistics_adjust(all, 5));
    for (int i = 0; i < 5; i++) {
        ck_assert(fabs(all[i].q - q[i]) < 1e-12);
    }
    ck_assert(ml_statistics_adjust(all, 0));
}
END_TEST

START_TEST(the_interval_holds_the_mean_nineteen_times_in_twenty) {
    unsigned held = 0;

    seed = 2;
    for (int i = 0; i < 2000; i++) {
        const struct ml_side side = side_of(50, 7, 3);
        held += fabs(side.sum / 50 - 7) <= ml_statistics_interval(side);
    }
    ck_assert_uint_gt(held, 1840);
    ck_assert_uint_lt(held, 1960);
    ck_assert(ml_statistics_interval((struct ml_side){.count = 1, .sum = 5, .squares = 25}) == 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("statistics");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_difference_is_found_with_its_size);
    tcase_add_test(tests, too_few_dumps_give_no_verdict);
    tcase_add_test(tests, sides_without_a_spread_are_equal_or_not);
    tcase_add_test(tests, equal_builds_are_called_equal);
    tcase_add_test(tests, q_is_that_of_benjamini_and_hochberg);
    tcase_add_test(tests, the_interval_holds_the_mean_nineteen_times_in_twenty);
    return run_suite("statistics", tests);
}
