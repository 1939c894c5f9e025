#include "host/policy/patterns.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_patterns *patterns;
static struct ml_error_message error;

static void set_up(void) {
    patterns = ml_patterns_new();
    ck_assert_ptr_nonnull(patterns);
    error.text[0] = '\0';
}

static void tear_down(void) {
    ml_patterns_free(patterns);
}

static void add(const char *regex, int number) {
    ck_assert_int_eq(ml_patterns_add(patterns, regex, number, &error), ML_OK);
    ck_assert_str_eq(error.text, "");
}

START_TEST(nothing_matches_no_pattern) {
    ck_assert_uint_eq(ml_patterns_count(patterns), 0);
    ck_assert_int_eq(ml_patterns_match(patterns, ""), -1);
    ck_assert_ptr_null(ml_patterns_matching(patterns, "anything"));
}
END_TEST

START_TEST(the_first_that_matches_wins) {
    add("render", 3);
    add("--type=(render|gpu)", 1);
    add("", 7); /* matches whatever comes */
    ck_assert_uint_eq(ml_patterns_count(patterns), 3);
    ck_assert_int_eq(ml_patterns_match(patterns, "chrome --type=render"), 3);
    ck_assert_int_eq(ml_patterns_match(patterns, "chrome --type=gpu"), 1);
    ck_assert_str_eq(ml_patterns_matching(patterns, "chrome --type=gpu"), "--type=(render|gpu)");
    ck_assert_int_eq(ml_patterns_match(patterns, "bash"), 7);
}
END_TEST

START_TEST(the_ends_are_only_where_they_are_asked_for) {
    add("^/usr/bin/cc1( |$)", 2);
    ck_assert_int_eq(ml_patterns_match(patterns, "/usr/bin/cc1 -O2"), 2);
    ck_assert_int_eq(ml_patterns_match(patterns, "/usr/bin/cc1plus -O2"), -1);
    ck_assert_int_eq(ml_patterns_match(patterns, "env /usr/bin/cc1"), -1);
}
END_TEST

START_TEST(what_is_no_regular_expression_is_refused_with_the_reason_and_leaves_the_others) {
    add("first", 0);
    static const char *const wrong[] = {"(", "[a", "a{2,1}", "*)"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        error.text[0] = '\0';
        ck_assert_int_eq(ml_patterns_add(patterns, wrong[i], 5, &error), ML_PEER_FORM);
        ck_assert_ptr_nonnull(strstr(error.text, wrong[i]));
        ck_assert_ptr_nonnull(strstr(error.text, "is no regular expression: "));
    }
    error.text[0] = '\0';
    add("second", 1);
    ck_assert_uint_eq(ml_patterns_count(patterns), 2);
    ck_assert_str_eq(ml_patterns_text(patterns, 0), "first");
    ck_assert_str_eq(ml_patterns_text(patterns, 1), "second");
}
END_TEST

START_TEST(keeps_a_text_of_its_own) {
    char regex[] = "abc";
    add(regex, 0);
    memset(regex, 'x', 3);
    ck_assert_str_eq(ml_patterns_text(patterns, 0), "abc");
    ck_assert_int_eq(ml_patterns_match(patterns, "xxx"), -1);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("patterns");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, nothing_matches_no_pattern);
    tcase_add_test(tcase, the_first_that_matches_wins);
    tcase_add_test(tcase, the_ends_are_only_where_they_are_asked_for);
    tcase_add_test(
        tcase, what_is_no_regular_expression_is_refused_with_the_reason_and_leaves_the_others
    );
    tcase_add_test(tcase, keeps_a_text_of_its_own);
    return run_suite("host/policy/patterns", tcase);
}
