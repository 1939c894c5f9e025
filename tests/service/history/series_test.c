#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"

#include "service/history/series.h"

/* Short, so that the rings wrap around often. */
static const struct ml_series_shape shape = {.slot_ns = 250000000, .slots = 16, .has_totals = true};

enum { MS = 1000000, NOTES_MAX = 60000 };

/* Everything that was noted: the full series that the coarse one is held against. */
struct oracle {
    struct {
        uint64_t ms;
        struct ml_series_now now;
    } notes[NOTES_MAX];
    uint32_t count;
};

static struct ml_budget budget;
static struct ml_series series;
static struct oracle oracle;
static struct ml_snapshot_point points[4096];
static uint64_t seed;

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    ml_series_init(&series, &shape);
    oracle.count = 0;
    seed = 1;
}

static void tear_down(void) {
    ml_series_fini(&series, &budget);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

static uint64_t random_below(uint64_t end) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % end;
}

static void note(uint64_t ms, uint64_t live_bytes) {
    ck_assert_uint_lt(oracle.count, NOTES_MAX);
    const uint32_t i = oracle.count++;
    oracle.notes[i].ms = ms;
    oracle.notes[i].now =
        (struct ml_series_now){.live_bytes = live_bytes, .total_bytes = i * 100, .total_blocks = i};
    ml_series_note(&series, &budget, ms * MS, &oracle.notes[i].now);
}

/* What held from the note `at`, which was the last before, to a moment; of the last point: until
 * now. `at` moves on. */
static struct ml_snapshot_point truth(uint64_t end_ms, bool is_last, uint32_t *at) {
    struct ml_snapshot_point found = {.least_bytes = UINT64_MAX, .end_ms = end_ms};
    while (*at < oracle.count && (oracle.notes[*at].ms < end_ms || is_last)) {
        const struct ml_series_now *now = &oracle.notes[*at].now;
        found.least_bytes =
            now->live_bytes < found.least_bytes ? now->live_bytes : found.least_bytes;
        found.most_bytes = now->live_bytes > found.most_bytes ? now->live_bytes : found.most_bytes;
        found.last_bytes = now->live_bytes;
        found.total_bytes = now->total_bytes;
        found.total_blocks = now->total_blocks;
        (*at)++;
    }
    *at -= *at > 0; /* it holds still when the next slot begins */
    return found;
}

static void
check_point(const struct ml_snapshot_point *point, const struct ml_snapshot_point *true_one) {
    ck_assert_uint_eq(point->least_bytes, true_one->least_bytes);
    ck_assert_uint_eq(point->most_bytes, true_one->most_bytes);
    ck_assert_uint_eq(point->last_bytes, true_one->last_bytes);
    ck_assert_uint_eq(point->total_bytes, true_one->total_bytes);
    ck_assert_uint_eq(point->total_blocks, true_one->total_blocks);
}

/* Every point says what was; answers how many there are. */
static uint32_t check(void) {
    ck_assert_uint_le(ml_series_points_max(&series), sizeof(points) / sizeof(points[0]));
    const uint32_t count = ml_series_points(&series, points);
    const uint64_t now_ms = oracle.notes[oracle.count - 1].ms;
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_gt(points[count - 1].end_ms, now_ms);
    ck_assert_uint_le(points[count - 1].end_ms, now_ms + 1);
    uint64_t from_ms = oracle.notes[0].ms;
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t span_ms = points[i].end_ms - from_ms;
        const struct ml_snapshot_point said = truth(points[i].end_ms, i + 1 == count, &at);
        check_point(&points[i], &said);
        /* So fine, for so long ago. */
        if (points[i].least_bytes != points[i].most_bytes && i > 0) {
            const uint64_t age_ms = now_ms - from_ms;
            ck_assert(
                span_ms <= shape.slot_ns / MS ||
                span_ms * (shape.slots - ML_SERIES_FACTOR) <= age_ms * ML_SERIES_FACTOR
            );
        }
        from_ms = points[i].end_ms;
    }
    return count;
}

START_TEST(coarse_slots_keep_least_most_and_last_of_the_fine_ones) {
    uint64_t ms = 1234567;
    for (uint32_t i = 0; i < 50000; i++) {
        ms += random_below(700);
        note(ms, random_below(1000000));
        if (i % 997 == 0) {
            (void)check();
        }
    }
    ck_assert_uint_lt(check(), shape.slots * ML_SERIES_LEVELS);
}
END_TEST

START_TEST(pauses_of_any_length_say_what_was_said_last) {
    uint64_t ms = 99;
    for (uint32_t i = 0; i < 3000; i++) {
        const uint64_t pause = random_below(24);
        ms += random_below(UINT64_C(1) << pause);
        note(ms, random_below(5));
        (void)check();
    }
}
END_TEST

START_TEST(what_does_not_change_takes_two_points) {
    for (uint32_t i = 0; i < 4000; i++) {
        const struct ml_series_now now = {.live_bytes = 7, .total_bytes = 7, .total_blocks = 1};
        ml_series_note(&series, &budget, i * UINT64_C(100) * MS, &now);
    }
    ck_assert_uint_le(ml_series_points(&series, points), 2);
    ck_assert_uint_eq(points[0].last_bytes, 7);
}
END_TEST

START_TEST(a_moment_before_the_last_counts_as_that) {
    note(5000, 1);
    const struct ml_series_now now = {.live_bytes = 9};
    ml_series_note(&series, &budget, UINT64_C(3000) * MS, &now);
    ck_assert_uint_eq(ml_series_points(&series, points), 1);
    ck_assert_uint_eq(points[0].end_ms, 5001);
    ck_assert_uint_eq(points[0].most_bytes, 9);
    ck_assert_uint_eq(points[0].least_bytes, 1);
}
END_TEST

/* It forgets what is long ago, and what it says of later is true. */
START_TEST(without_memory_levels_forget_earlier) {
    budget.max_bytes = 1000;
    for (uint32_t i = 0; i < 3000; i++) {
        note(1000 + i * UINT64_C(250), i);
    }
    ck_assert_uint_le(budget.used_bytes, 1000);
    const uint32_t count = ml_series_points(&series, points);
    ck_assert_uint_ge(count, ML_SERIES_LEAST_SLOTS - ML_SERIES_FACTOR);
    for (uint32_t i = 1; i < count; i++) {
        ck_assert_uint_gt(points[i].end_ms, points[i - 1].end_ms);
        ck_assert_uint_gt(points[i].last_bytes, points[i - 1].last_bytes);
    }
    ck_assert_uint_eq(points[count - 1].last_bytes, 2999);
    budget.max_bytes = 0;
}
END_TEST

START_TEST(with_no_memory_at_all_there_are_no_points) {
    budget.max_bytes = 0;
    const struct ml_series_now now = {.live_bytes = 9};
    ml_series_note(&series, &budget, 1, &now);
    ml_series_note(&series, &budget, UINT64_C(1) << 40, &now);
    ck_assert_uint_eq(ml_series_points(&series, points), 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("series");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, coarse_slots_keep_least_most_and_last_of_the_fine_ones);
    tcase_add_test(tcase, pauses_of_any_length_say_what_was_said_last);
    tcase_add_test(tcase, what_does_not_change_takes_two_points);
    tcase_add_test(tcase, a_moment_before_the_last_counts_as_that);
    tcase_add_test(tcase, without_memory_levels_forget_earlier);
    tcase_add_test(tcase, with_no_memory_at_all_there_are_no_points);
    return run_suite("service/series", tcase);
}
