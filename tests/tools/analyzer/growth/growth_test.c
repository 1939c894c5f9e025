/* Verdicts over curves whose law is known. Random ones have fixed seeds: a run is like the last. */
#include "tools/analyzer/growth/growth.h"

#include <math.h>
#include <stdbool.h>

#include <check.h>

#include "tests/suite.h"

enum { POINTS_MAX = 400, POINT_MS = 1000, LOOKS = 20, START_MS = 5000, LEAST = 1000 };

#define MIB 1048576.0

static struct ml_growth_low lows[POINTS_MAX];
static uint64_t seed;

static double uniform(void) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (double)(seed >> 11) / (double)(1U << 21) / (double)(1U << 31) / 2;
}

/* Nearly normal, with a standard deviation of 1. */
static double noise(void) {
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += uniform();
    }
    return sum;
}

/* The curve at a part (0 to 1) of the time, in MiB. */
typedef double curve(double part);

static struct ml_growth judge(curve *at, size_t points) {
    for (size_t i = 0; i < points; i++) {
        double low = INFINITY;
        for (int j = 0; j < LOOKS; j++) {
            low = fmin(low, at(((double)i + (double)j / LOOKS) / (double)points));
        }
        lows[i] = (struct ml_growth_low
        ){.end_ms = START_MS + (i + 1) * POINT_MS, .bytes = (uint64_t)(fmax(low, 0) * MIB)};
    }
    return ml_growth_judge(lows, points, START_MS, LEAST);
}

static const size_t lengths[] = {11, 12, 17, 20, 40, 100, POINTS_MAX};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static double leak(double part) {
    return 10 + 50 * part;
}

static double leak_that_is_collected(double part) {
    return leak(part) + 100 * fmod(part * 40, 1);
}

static double leak_beside_noise(double part) {
    return leak(part) + 0.5 * noise();
}

START_TEST(a_leak_is_steady_with_its_slope_from_its_start) {
    for (size_t i = 0; i < LENGTHS; i++) {
        const double seconds = (double)lengths[i] * POINT_MS / 1000;
        const struct ml_growth growth = judge(leak, lengths[i]);
        ck_assert_int_eq(growth.kind, ML_GROWTH_STEADY);
        ck_assert_uint_eq(growth.since_ms, START_MS);
        ck_assert_uint_eq(growth.until_ms, START_MS + lengths[i] * POINT_MS);
        ck_assert_uint_eq(growth.steps, lengths[i] > 33 ? 16 : lengths[i] - 1);
        ck_assert_uint_eq(growth.rising, growth.steps);
        ck_assert_double_eq_tol(growth.bytes_per_s, 50 * MIB / seconds, 2 * MIB / seconds);
        ck_assert_double_eq_tol((double)growth.grown_bytes, 48 * MIB, 4 * MIB);
    }
}
END_TEST

START_TEST(a_leak_below_collections_and_noise_is_found) {
    seed = 1;
    for (int run = 0; run < 100; run++) {
        const struct ml_growth growth = judge(leak_beside_noise, 100);
        ck_assert_int_eq(growth.kind, ML_GROWTH_STEADY);
        ck_assert_double_gt(growth.error_per_s, 0);
        ck_assert_double_eq_tol(growth.bytes_per_s, 50 * MIB / 100, 4 * growth.error_per_s + 10);
    }
    ck_assert_int_eq(judge(leak_that_is_collected, POINTS_MAX).kind, ML_GROWTH_STEADY);
}
END_TEST

static double late_leak(double part) {
    return part < 0.4 ? 50 : 50 + 100 * (part - 0.4);
}

static double leak_behind_a_start(double part) {
    return part < 0.05 ? 1 : 500 + 10 * part;
}

START_TEST(a_leak_has_a_beginning) {
    const struct ml_growth late = judge(late_leak, POINTS_MAX);
    const struct ml_growth behind = judge(leak_behind_a_start, POINTS_MAX);

    ck_assert_int_eq(late.kind, ML_GROWTH_STEADY);
    ck_assert_double_eq_tol((double)(late.since_ms - START_MS), 0.4 * POINTS_MAX * POINT_MS, 15000);
    ck_assert_int_eq(behind.kind, ML_GROWTH_STEADY);
    ck_assert_double_eq_tol(behind.bytes_per_s, 10 * MIB / POINTS_MAX, MIB / POINTS_MAX);
}
END_TEST

static double tau;
static double cache(double part) {
    return 100 * (1 - exp(-part / tau)) + 0.02 * noise();
}

static double flat_from;
static double full(double part) {
    return 100 * fmin(part, flat_from) + 1;
}

START_TEST(a_cache_that_fills_is_no_suspect) {
    static const double taus[] = {0.1, 0.25, 0.5, 1};
    static const double flats[] = {0.05, 0.3, 0.5, 0.7, 0.85};

    seed = 2;
    for (size_t i = 2; i < LENGTHS; i++) {
        for (size_t j = 0; j < sizeof taus / sizeof taus[0]; j++) {
            tau = taus[j];
            const enum ml_growth_kind kind = judge(cache, lengths[i]).kind;
            ck_assert_msg(
                kind == ML_GROWTH_SLOWING || kind == ML_GROWTH_LEVELLED,
                "%f %zu: %d",
                tau,
                lengths[i],
                kind
            );
        }
        for (size_t j = 0; j < sizeof flats / sizeof flats[0]; j++) {
            flat_from = flats[j];
            ck_assert_int_ne(judge(full, lengths[i]).kind, ML_GROWTH_STEADY);
        }
    }
    flat_from = 0.5;
    const struct ml_growth growth = judge(full, 100);
    ck_assert_int_eq(growth.kind, ML_GROWTH_LEVELLED);
    ck_assert_double_eq_tol((double)(growth.until_ms - START_MS), 50000, 10000);
    ck_assert_double_eq_tol((double)growth.grown_bytes, 50 * MIB, 5 * MIB);
}
END_TEST

static double position, pull;
static double walk(double part) {
    position = part == 0 ? 1000 : 1000 + (position - 1000) * pull + noise();
    return position;
}

START_TEST(what_goes_up_and_down_by_chance_is_called_steady_less_than_once_in_1000) {
    enum { RUNS = 3000 };
    static const double pulls[] = {1, 0.999, 0.99, 0.9, 0};

    seed = 3;
    for (size_t i = 2; i < LENGTHS; i++) {
        for (size_t j = 0; j < sizeof pulls / sizeof pulls[0]; j++) {
            int called = 0;
            pull = pulls[j];
            for (int run = 0; run < RUNS; run++) {
                called += judge(walk, lengths[i]).kind == ML_GROWTH_STEADY;
            }
            ck_assert_msg(called < RUNS / 1000, "%zu, %f: %d", lengths[i], pull, called);
        }
    }
}
END_TEST

static double flat(double part) {
    (void)part;
    return 70;
}
static double step(double part) {
    return part < 0.3 ? 1 : 60;
}
static double saw(double part) {
    return 10 + 100 * fmod(part * 4, 1);
}
static double falls(double part) {
    return 100 - 50 * part;
}
static double doubles(double part) {
    return exp2(floor(part * 8));
}

START_TEST(steps_waves_and_falls_are_no_suspects) {
    curve *const curves[] = {flat, step, saw, falls, doubles};

    for (size_t i = 0; i < LENGTHS; i++) {
        for (size_t j = 0; j < sizeof curves / sizeof curves[0]; j++) {
            const enum ml_growth_kind kind = judge(curves[j], lengths[i]).kind;
            ck_assert_msg(kind != ML_GROWTH_STEADY && kind != ML_GROWTH_FREED, "%zu %zu", i, j);
        }
    }
    ck_assert_int_eq(judge(step, 100).kind, ML_GROWTH_NONE); /* one allocation */
}
END_TEST

static double freed_at_exit(double part) {
    return part < 0.97 ? leak(part) : 1;
}
static double freed_midway(double part) {
    return part < 0.6 ? leak(part) : 1;
}

START_TEST(what_was_freed_at_the_end_is_told_apart) {
    const struct ml_growth growth = judge(freed_at_exit, 100);

    ck_assert_int_eq(growth.kind, ML_GROWTH_FREED);
    ck_assert_uint_eq(growth.until_ms, START_MS + 97 * POINT_MS);
    ck_assert_double_eq_tol(growth.bytes_per_s, 50 * MIB / 100, MIB / 50);
    ck_assert_int_eq(judge(freed_midway, 100).kind, ML_GROWTH_NONE);
}
END_TEST

static double tiny(double part) {
    return 10 + (LEAST - 1) / MIB * part;
}

START_TEST(what_is_short_small_or_empty_has_no_verdict) {
    ck_assert_int_eq(ml_growth_judge(lows, 0, 0, LEAST).kind, ML_GROWTH_SHORT);
    for (size_t points = 1; points <= 10; points++) {
        ck_assert_int_eq(judge(leak, points).kind, ML_GROWTH_SHORT);
    }
    ck_assert_int_eq(judge(tiny, 100).kind, ML_GROWTH_NONE);
}
END_TEST

START_TEST(points_of_different_lengths_are_laid_by_their_time) {
    /* As the service keeps them: the older, the longer. */
    size_t count = 0;
    uint64_t end_ms = START_MS;

    for (uint64_t length_ms = 64000; length_ms >= 1000; length_ms /= 4) {
        for (int i = 0; i < 64; i++) {
            const uint64_t held = end_ms - START_MS;
            end_ms += length_ms;
            lows[count++] = (struct ml_growth_low){.end_ms = end_ms, .bytes = held};
        }
    }
    const struct ml_growth growth = ml_growth_judge(lows, count, START_MS, LEAST);
    ck_assert_int_eq(growth.kind, ML_GROWTH_STEADY);
    ck_assert_double_eq_tol(growth.bytes_per_s, 1000, 50);
}
END_TEST

START_TEST(hostile_points_are_survived) {
    for (size_t i = 0; i < POINTS_MAX; i++) {
        lows[i] = (struct ml_growth_low
        ){.end_ms = i % 3 == 0 ? UINT64_MAX : i, .bytes = i % 2 == 0 ? UINT64_MAX : 0};
    }
    ck_assert_int_ne(ml_growth_judge(lows, POINTS_MAX, UINT64_MAX, 0).kind, ML_GROWTH_STEADY);
    ck_assert_int_ne(ml_growth_judge(lows, POINTS_MAX, 0, 0).kind, ML_GROWTH_STEADY);
    for (size_t i = 0; i < POINTS_MAX; i++) {
        lows[i] = (struct ml_growth_low){.end_ms = 5, .bytes = i};
    }
    (void)ml_growth_judge(lows, POINTS_MAX, 5, 0);
    (void)ml_growth_judge(lows, POINTS_MAX, 4, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("growth");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_leak_is_steady_with_its_slope_from_its_start);
    tcase_add_test(tests, a_leak_below_collections_and_noise_is_found);
    tcase_add_test(tests, a_leak_has_a_beginning);
    tcase_add_test(tests, a_cache_that_fills_is_no_suspect);
    tcase_add_test(tests, what_goes_up_and_down_by_chance_is_called_steady_less_than_once_in_1000);
    tcase_add_test(tests, steps_waves_and_falls_are_no_suspects);
    tcase_add_test(tests, what_was_freed_at_the_end_is_told_apart);
    tcase_add_test(tests, what_is_short_small_or_empty_has_no_verdict);
    tcase_add_test(tests, points_of_different_lengths_are_laid_by_their_time);
    tcase_add_test(tests, hostile_points_are_survived);
    return run_suite("growth", tests);
}
