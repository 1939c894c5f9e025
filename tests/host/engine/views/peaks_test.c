#include <stdint.h>

#include <check.h>

#include "tests/suite.h"

#include "host/engine/views/peaks.h"

#define MIB ((uint64_t)1 << 20)

START_TEST(a_new_peak_is_a_twentieth_and_a_mebibyte_above_the_last) {
    ck_assert(!ml_is_new_peak(0, 0));
    ck_assert(!ml_is_new_peak(MIB - 1, 0));
    ck_assert(ml_is_new_peak(MIB, 0));
    ck_assert(!ml_is_new_peak(10 * MIB + MIB - 1, 10 * MIB));
    ck_assert(ml_is_new_peak(11 * MIB, 10 * MIB));
    ck_assert(!ml_is_new_peak(1049 * MIB, 1000 * MIB));
    ck_assert(ml_is_new_peak(1050 * MIB, 1000 * MIB));
    ck_assert(!ml_is_new_peak(5 * MIB, 1000 * MIB));
    ck_assert(ml_is_new_peak(UINT64_MAX, UINT64_MAX / 2));
    ck_assert(!ml_is_new_peak(UINT64_MAX, UINT64_MAX));
}
END_TEST

START_TEST(after_a_reading_there_is_a_rest_of_fifty_times_its_length) {
    ck_assert_uint_eq(ml_next_reading_ns(1000, 10), 1000 + 500);
    ck_assert_uint_eq(ml_next_reading_ns(1000, 0), 1000);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, a_new_peak_is_a_twentieth_and_a_mebibyte_above_the_last);
    tcase_add_test(tests, after_a_reading_there_is_a_rest_of_fifty_times_its_length);
    return run_suite("host/view_peaks", tests);
}
