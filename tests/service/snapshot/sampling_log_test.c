#include "service/snapshot/sampling_log.h"

#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"

START_TEST(changes_stand_in_their_order_once) {
    struct ml_sampling_log log = {.count = 0};
    ml_sampling_log_begin(&log, 10, 1);
    ml_sampling_log_note(&log, 20, 512);
    ml_sampling_log_note(&log, 21, 512);
    ml_sampling_log_note(&log, 30, 1024);
    ml_sampling_log_note(&log, 40, 1);
    ck_assert_uint_eq(log.count, 4);
    const uint64_t intervals[] = {1, 512, 1024, 1};
    const uint64_t times[] = {10, 20, 30, 40};
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(log.changes[i].interval_bytes, intervals[i]);
        ck_assert_uint_eq(log.changes[i].ticks, times[i]);
    }
    ck_assert_uint_eq(log.longest_bytes, 1024);
    ck_assert_uint_eq(log.left_out, 0);
}
END_TEST

START_TEST(who_is_read_late_is_put_in_by_his_time) {
    struct ml_sampling_log log = {.count = 0};
    ml_sampling_log_begin(&log, 10, 1);
    ml_sampling_log_note(&log, 30, 1024);
    ml_sampling_log_note(&log, 20, 4096);
    ml_sampling_log_note(&log, 25, 4096);
    ml_sampling_log_note(&log, 28, 1024);
    ml_sampling_log_note(&log, 5, 512);
    const uint64_t intervals[] = {1, 512, 4096, 1024};
    const uint64_t times[] = {10, 5, 20, 28};
    ck_assert_uint_eq(log.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(log.changes[i].interval_bytes, intervals[i]);
        ck_assert_uint_eq(log.changes[i].ticks, times[i]);
    }
    ck_assert_uint_eq(log.longest_bytes, 4096);
}
END_TEST

START_TEST(a_start_that_is_read_last_stands_first) {
    struct ml_sampling_log log = {.longest_bytes = 4096};
    ml_sampling_log_note(&log, 20, 512);
    ck_assert_uint_eq(log.longest_bytes, 512);
    ml_sampling_log_note(&log, 30, 1024);
    ml_sampling_log_note(&log, 15, 256);
    ml_sampling_log_begin(&log, 10, 1);
    const uint64_t intervals[] = {1, 256, 512, 1024};
    ck_assert_uint_eq(log.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(log.changes[i].interval_bytes, intervals[i]);
    }
    ck_assert_uint_eq(log.changes[0].ticks, 10);
}
END_TEST

START_TEST(a_full_log_takes_what_is_read_late_too) {
    struct ml_sampling_log log = {.count = 0};
    ml_sampling_log_begin(&log, 0, 1);
    for (uint64_t i = 1; i < ML_SAMPLING_LOG_MAX; i++) {
        ml_sampling_log_note(&log, 10 * i, i + 1);
    }
    ml_sampling_log_note(&log, 15, 7777);
    ck_assert_uint_eq(log.count, ML_SAMPLING_LOG_MAX);
    ck_assert_uint_eq(log.left_out, 1);
    ck_assert_uint_eq(log.changes[2].interval_bytes, 7777);
    ck_assert_uint_eq(log.changes[ML_SAMPLING_LOG_MAX - 1].interval_bytes, ML_SAMPLING_LOG_MAX);
    ml_sampling_log_note(&log, 10 * ML_SAMPLING_LOG_MAX - 15, 8888);
    ck_assert_uint_eq(log.count, ML_SAMPLING_LOG_MAX);
    ck_assert_uint_eq(log.left_out, 2);
    ck_assert_uint_eq(log.changes[ML_SAMPLING_LOG_MAX - 1].interval_bytes, ML_SAMPLING_LOG_MAX);
}
END_TEST

START_TEST(of_many_changes_the_last_is_told_and_the_rest_counted) {
    struct ml_sampling_log log = {.count = 0};
    ml_sampling_log_begin(&log, 0, 1);
    for (uint64_t i = 1; i <= 1000; i++) {
        ml_sampling_log_note(&log, i, i + 1);
        ck_assert_uint_eq(log.changes[log.count - 1].interval_bytes, i + 1);
        ck_assert_uint_eq(log.count + log.left_out, i + 1);
    }
    ck_assert_uint_eq(log.count, ML_SAMPLING_LOG_MAX);
    ck_assert_uint_eq(log.changes[ML_SAMPLING_LOG_MAX - 2].interval_bytes, ML_SAMPLING_LOG_MAX - 1);
}
END_TEST

START_TEST(a_profile_without_its_start_begins_with_what_comes_first) {
    struct ml_sampling_log log = {.count = 0};
    ml_sampling_log_note(&log, 7, 4096);
    ck_assert_uint_eq(log.count, 1);
    ck_assert_uint_eq(log.changes[0].ticks, 7);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("sampling_log");
    tcase_add_test(tcase, changes_stand_in_their_order_once);
    tcase_add_test(tcase, who_is_read_late_is_put_in_by_his_time);
    tcase_add_test(tcase, a_start_that_is_read_last_stands_first);
    tcase_add_test(tcase, a_full_log_takes_what_is_read_late_too);
    tcase_add_test(tcase, of_many_changes_the_last_is_told_and_the_rest_counted);
    tcase_add_test(tcase, a_profile_without_its_start_begins_with_what_comes_first);
    return run_suite("service/sampling_log", tcase);
}
