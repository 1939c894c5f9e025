#include "host/policy/restart_policy.h"

#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"

START_TEST(a_service_that_has_lived_is_replaced_at_once_however_often) {
    struct ml_restart_policy restart_policy = {0};
    for (int i = 0; i < 1000; i++) {
        const struct ml_restart_verdict verdict =
            ml_restart_policy_died(&restart_policy, ML_RESTART_HEALTHY_MS, 0);
        ck_assert(verdict.again);
        ck_assert_uint_eq(verdict.delay_ms, 0);
        ck_assert_uint_eq(verdict.poison, 0);
    }
}
END_TEST

START_TEST(services_that_die_in_a_row_are_replaced_ever_later_and_at_last_no_more) {
    struct ml_restart_policy restart_policy = {0};
    uint32_t delay_ms = 0;
    for (int i = 0; i < ML_RESTART_DEATHS_MAX; i++) {
        const struct ml_restart_verdict verdict = ml_restart_policy_died(&restart_policy, 1, 0);
        ck_assert(verdict.again);
        ck_assert_uint_ge(verdict.delay_ms, delay_ms);
        delay_ms = verdict.delay_ms;
    }
    ck_assert_uint_gt(delay_ms, 1000);
    ck_assert(!ml_restart_policy_died(&restart_policy, 1, 0).again);
}
END_TEST

START_TEST(whose_data_kills_two_in_a_row_is_left_out_and_the_count_begins_anew) {
    struct ml_restart_policy restart_policy = {0};
    ck_assert_uint_eq(ml_restart_policy_died(&restart_policy, 60000, 7).poison, 0);
    ck_assert_uint_eq(ml_restart_policy_died(&restart_policy, 5, 8).poison, 0);
    ck_assert_uint_eq(ml_restart_policy_died(&restart_policy, 5, 7).poison, 0);
    const struct ml_restart_verdict verdict = ml_restart_policy_died(&restart_policy, 5, 7);
    ck_assert_uint_eq(verdict.poison, 7);
    ck_assert(verdict.again);
    ck_assert_uint_eq(verdict.delay_ms, 0);
}
END_TEST

START_TEST(two_deaths_far_apart_make_nobody_a_suspect) {
    struct ml_restart_policy restart_policy = {0};
    ck_assert_uint_eq(ml_restart_policy_died(&restart_policy, 60000, 7).poison, 0);
    ck_assert_uint_eq(ml_restart_policy_died(&restart_policy, 60000, 7).poison, 0);
    ck_assert_uint_eq(ml_restart_policy_died(&restart_policy, 1, 0).poison, 0);
    ck_assert_uint_eq(ml_restart_policy_died(&restart_policy, 1, 0).poison, 0);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("restart_policy");
    tcase_add_test(cases, a_service_that_has_lived_is_replaced_at_once_however_often);
    tcase_add_test(cases, services_that_die_in_a_row_are_replaced_ever_later_and_at_last_no_more);
    tcase_add_test(cases, whose_data_kills_two_in_a_row_is_left_out_and_the_count_begins_anew);
    tcase_add_test(cases, two_deaths_far_apart_make_nobody_a_suspect);
    return run_suite("host/restart_policy", cases);
}
