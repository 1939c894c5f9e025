#include "base/suggest.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(counts_insertions_deletions_replacements_and_swaps) {
    ck_assert_uint_eq(ml_edit_distance("", ""), 0);
    ck_assert_uint_eq(ml_edit_distance("abc", "abc"), 0);
    ck_assert_uint_eq(ml_edit_distance("", "abc"), 3);
    ck_assert_uint_eq(ml_edit_distance("abc", ""), 3);
    ck_assert_uint_eq(ml_edit_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(ml_edit_distance("brwoser", "browser"), 1);
}
END_TEST

START_TEST(words_that_are_too_long_are_far_from_everything) {
    char word[ML_SUGGEST_WORD_MAX + 2];
    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    ck_assert_uint_eq(ml_edit_distance(word, "a"), ML_SUGGEST_WORD_MAX + 1);
    word[ML_SUGGEST_WORD_MAX] = '\0';
    ck_assert_uint_eq(ml_edit_distance(word, word), 0);
}
END_TEST

START_TEST(suggests_what_is_near_and_nothing_else) {
    static const char *const words[] = {"browser", "renderer", "gpu", "all"};
    ck_assert_str_eq(ml_suggest("renderers", words, 4), "renderer");
    ck_assert_str_eq(ml_suggest("bowser", words, 4), "browser");
    ck_assert_str_eq(ml_suggest("rend", words, 4), "renderer");
    ck_assert_ptr_null(ml_suggest("zzzzzz", words, 4));
    ck_assert_ptr_null(ml_suggest("", words, 0));
}
END_TEST

START_TEST(suggests_what_has_the_word_between_dashes) {
    static const char *const words[] = {"--output", "--memlog-sampling-rate", "--no-page"};
    ck_assert_str_eq(ml_suggest("--sampling", words, 3), "--memlog-sampling-rate");
    ck_assert_str_eq(ml_suggest("--rate", words, 3), "--memlog-sampling-rate");
    ck_assert_ptr_null(ml_suggest("--amplin", words, 3));
    ck_assert_ptr_null(ml_suggest("--xyz", words, 3));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("suggest");
    tcase_add_test(tcase, counts_insertions_deletions_replacements_and_swaps);
    tcase_add_test(tcase, words_that_are_too_long_are_far_from_everything);
    tcase_add_test(tcase, suggests_what_is_near_and_nothing_else);
    tcase_add_test(tcase, suggests_what_has_the_word_between_dashes);
    return run_suite("base/suggest", tcase);
}
