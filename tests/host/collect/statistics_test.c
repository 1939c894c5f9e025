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

/* ---- equal builds */

enum { STACKS = 200, TRIALS = 1000 };

/* One stack's share of a dump, or a machine's mean. */
typedef double (*one_of)(int stack);

static double steady(int stack) {
    return stack + noise();
}

/* As stacks are: most of what there is lies in a few of the dumps. */
static double heavy(int stack) {
    return exp((stack % 4) * noise());
}

/* In one dump of some hundred alone. */
static double rare(int stack) {
    return uniform() * (5 + stack) < 1 ? exp(0.3 * noise()) : 0;
}

static struct ml_side side_by(uint64_t count, one_of one, int stack) {
    struct ml_side side = {.count = count};

    for (uint64_t i = 0; i < count; i++) {
        const double value = one(stack);
        side.sum += value;
        side.squares += value * value;
    }
    return side;
}

/* How many of the comparisons of two equal builds call any of their stacks different. */
static unsigned called(one_of one, uint64_t before, uint64_t after, unsigned trials) {
    unsigned count = 0;

    seed = before * 1000 + after;
    for (unsigned trial = 0; trial < trials; trial++) {
        struct ml_difference all[STACKS];
        bool any = false;
        for (int i = 0; i < STACKS; i++) {
            all[i] = ml_statistics_compare(side_by(before, one, i), side_by(after, one, i));
        }
        ck_assert(ml_statistics_adjust(all, STACKS));
        for (int i = 0; i < STACKS; i++) {
            any = any || all[i].q < ML_STATISTICS_Q;
        }
        count += any;
    }
    return count;
}

/* By p alone ten of each two hundred stacks would be called different; by q less than one of a
 * thousand comparisons calls anything so. */
START_TEST(equal_builds_are_called_equal) {
    unsigned by_p = 0;

    for (int i = 0; i < STACKS; i++) {
        by_p += ml_statistics_compare(side_of(40, i, 1), side_of(40, i, 1)).p < 0.05;
    }
    ck_assert_uint_gt(by_p, 2);
    ck_assert_uint_le(called(steady, 40, 40, TRIALS), 4);
    ck_assert_uint_le(called(steady, ML_STATISTICS_LEAST, ML_STATISTICS_LEAST, TRIALS), 4);
}
END_TEST

START_TEST(rare_and_large_values_are_no_difference) {
    const one_of kinds[] = {heavy, rare};

    for (int i = 0; i < 2; i++) {
        ck_assert_uint_le(called(kinds[i], 40, 40, TRIALS), 4);
        ck_assert_uint_le(called(kinds[i], ML_STATISTICS_LEAST, 300, TRIALS / 5), 2);
        ck_assert_uint_le(called(kinds[i], 300, ML_STATISTICS_LEAST, TRIALS / 5), 2);
    }
}
END_TEST

/* A stack that one dump in twenty has: that none of the twenty has it is no news. */
START_TEST(a_small_side_that_missed_a_rare_stack_is_not_different) {
    const struct ml_side none = {.count = 20};
    const struct ml_side some = {.count = 1000, .sum = 50, .squares = 50};

    ck_assert(fabs(ml_statistics_compare(none, some).z) < 2);
    ck_assert(fabs(ml_statistics_compare(some, none).z) < 2);
}
END_TEST

/* Student's t by tables: 0.1 % on both sides. */
START_TEST(few_dumps_make_a_difference_less_sure) {
    const struct {
        uint64_t count;
        double t;
    } tables[] = {{20, 3.566}, {31, 3.460}, {1001, 3.300}};

    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        const double count = (double)tables[i].count;
        const double by = tables[i].t * sqrt(2 / count);
        const struct ml_side before = {.count = tables[i].count, .squares = count - 1};
        const struct ml_side after = {
            .count = tables[i].count, .sum = by * count, .squares = count - 1 + by * by * count};
        ck_assert(fabs(ml_statistics_compare(before, after).p - 0.001) < 2e-5);
    }
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
    tcase_add_test(tests, rare_and_large_values_are_no_difference);
    tcase_add_test(tests, a_small_side_that_missed_a_rare_stack_is_not_different);
    tcase_add_test(tests, few_dumps_make_a_difference_less_sure);
    tcase_add_test(tests, q_is_that_of_benjamini_and_hochberg);
    tcase_add_test(tests, the_interval_holds_the_mean_nineteen_times_in_twenty);
    return run_suite("statistics", tests);
}
