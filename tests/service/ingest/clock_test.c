/* Ticks and nanoseconds. */
#include <check.h>

#include "tests/suite.h"

#include "service/ingest/clock.h"

enum { MS = 1000000 };

START_TEST(monotonic_ticks_are_nanoseconds) {
    const struct ml_clock_source clock = {.kind = ML_CLOCK_MONOTONIC};
    const uint64_t before = ml_clock_monotonic_ns();
    const uint64_t ticks = ml_clock_ticks(&clock);
    ck_assert_uint_ge(ticks, before);
    ck_assert_uint_le(ticks, ml_clock_monotonic_ns());
    ck_assert_uint_eq(ml_clock_ticks_of_ns(&clock, 12345), 12345);
}
END_TEST

START_TEST(ticks_never_fall) {
    const struct ml_clock_source clock = {.kind = (enum ml_clock)_i};
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t ticks = ml_clock_ticks(&clock);
        ck_assert_uint_ge(ticks, last);
        last = ticks;
    }
}
END_TEST

START_TEST(learns_how_fast_ticks_tick) {
    /* As if 100 ms ago, at three ticks a nanosecond. */
    struct ml_clock_source clock = {.kind = ML_CLOCK_TSC};
    clock.start.monotonic_ns = ml_clock_monotonic_ns() - 100 * MS;
    clock.start.ticks = ml_clock_ticks(&clock) - UINT64_C(300) * MS;
    const uint64_t ticks = ml_clock_ticks_of_ns(&clock, 1000);
    ck_assert_uint_ge(ticks, 2000);
    ck_assert_uint_le(ticks, 5000);
}
END_TEST

START_TEST(is_on_the_safe_side_before_it_has_learnt) {
    struct ml_clock_source clock = {.kind = ML_CLOCK_TSC};
    clock.start.monotonic_ns = ml_clock_monotonic_ns() + 100 * MS;
    clock.start.ticks = ml_clock_ticks(&clock);
    ck_assert_uint_eq(ml_clock_ticks_of_ns(&clock, 1000), 10000);
}
END_TEST

START_TEST(is_not_fooled_by_a_start_that_never_was) {
    struct ml_clock_source clock = {.kind = ML_CLOCK_TSC};
    /* All zeros: the ticks would tick as fast as since the machine's start. */
    const uint64_t ticks = ml_clock_ticks_of_ns(&clock, 1000);
    ck_assert_uint_le(ticks, 10000);
    clock.start.ticks = UINT64_MAX;
    ck_assert_uint_eq(ml_clock_ticks_of_ns(&clock, 1000), 10000);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_test(all, monotonic_ticks_are_nanoseconds);
    tcase_add_loop_test(all, ticks_never_fall, 0, ML_CLOCK_COUNT);
    tcase_add_test(all, learns_how_fast_ticks_tick);
    tcase_add_test(all, is_on_the_safe_side_before_it_has_learnt);
    tcase_add_test(all, is_not_fooled_by_a_start_that_never_was);
    return run_suite("service/clock", all);
}
