#include "host/policy/name_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_name_rules rules;
static struct ml_error_message error;

static void tear_down(void) {
    ml_name_rules_fini(&rules);
    memset(&rules, 0, sizeof(rules));
    error.text[0] = '\0';
}

static enum ml_status add(const char *regex, uint64_t sampling_bytes) {
    struct ml_name_rule rule = {.sampling_bytes = sampling_bytes};
    (void)snprintf(rule.regex, sizeof(rule.regex), "%s", regex);
    return ml_name_rules_add(&rules, &rule, &error);
}

START_TEST(a_name_or_a_command_line_is_enough) {
    ck_assert_int_eq(add("^worker|--type=renderer", 1), ML_OK);
    ck_assert_ptr_nonnull(ml_name_rules_find(&rules, "worker-1", NULL));
    ck_assert_ptr_nonnull(ml_name_rules_find(&rules, "x", "x --type=renderer"));
    ck_assert_ptr_nonnull(ml_name_rules_find(&rules, NULL, "worker"));
    ck_assert_ptr_null(ml_name_rules_find(&rules, "x", "x worker"));
    ck_assert_ptr_null(ml_name_rules_find(&rules, NULL, NULL));
}
END_TEST

START_TEST(the_later_of_two_counts_and_the_same_twice_is_one) {
    ck_assert_int_eq(add("a", 1), ML_OK);
    ck_assert_int_eq(add("b", 2), ML_OK);
    ck_assert_uint_eq(ml_name_rules_find(&rules, "ab", NULL)->sampling_bytes, 2);
    ck_assert_int_eq(add("a", 3), ML_OK);
    ck_assert_uint_eq(rules.count, 2);
    ck_assert_uint_eq(ml_name_rules_find(&rules, "ab", NULL)->sampling_bytes, 3);
    ml_name_rules_remove(&rules, "a");
    ck_assert_uint_eq(ml_name_rules_find(&rules, "ab", NULL)->sampling_bytes, 2);
    ml_name_rules_remove(&rules, "never there");
    ml_name_rules_remove(&rules, "b");
    ck_assert_uint_eq(rules.count, 0);
    ck_assert_ptr_null(ml_name_rules_find(&rules, "ab", NULL));
}
END_TEST

START_TEST(what_cannot_be_wished_is_said_and_changes_nothing) {
    ck_assert_int_eq(add("a", 1), ML_OK);
    ck_assert_int_eq(add("", 1), ML_PEER_FORM);
    ck_assert_int_eq(add("(", 1), ML_PEER_FORM);
    ck_assert_str_ne(error.text, "");
    ck_assert_uint_eq(rules.count, 1);
    char regex[16];
    for (int i = 1; i < ML_NAME_RULES_MAX; i++) {
        (void)snprintf(regex, sizeof(regex), "n%d", i);
        ck_assert_int_eq(add(regex, 1), ML_OK);
    }
    ck_assert_int_eq(add("one more", 1), ML_PEER_LIMIT);
    ck_assert_uint_eq(rules.count, ML_NAME_RULES_MAX);
    ck_assert_int_eq(add("n1", 7), ML_OK); /* known already */
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("name_rules");
    tcase_add_checked_fixture(tcase, NULL, tear_down);
    tcase_add_test(tcase, a_name_or_a_command_line_is_enough);
    tcase_add_test(tcase, the_later_of_two_counts_and_the_same_twice_is_one);
    tcase_add_test(tcase, what_cannot_be_wished_is_said_and_changes_nothing);
    return run_suite("host/name_rules", tcase);
}
