#include "base/shell_word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static const struct {
    const char *text;
    const char *word;
} cases[] = {
    {"/usr/bin/memlog-1.0_a+b", "/usr/bin/memlog-1.0_a+b"},
    {"", "''"},
    {"a b", "'a b'"},
    {"$HOME", "'$HOME'"},
    {"it's", "'it'\\''s'"},
    {"gr\xc3\xb6\xc3\x9f", "'gr\xc3\xb6\xc3\x9f'"},
    {"~", "'~'"},
    {"a=b", "'a=b'"},
    {"\x1b[2J's\\", "$'\\x1b[2J\\'s\\\\'"},
    {"\xff\xe2\x80\xae", "$'\\xff\\xe2\\x80\\xae'"},
};

START_TEST(a_word_is_one_for_a_shell_and_plain_for_a_terminal) {
    char word[64];
    ck_assert(ml_shell_word(cases[_i].text, word, sizeof(word)));
    ck_assert_str_eq(word, cases[_i].word);
}
END_TEST

/* bash itself takes each for what it was. */
START_TEST(a_shell_reads_what_was_meant) {
    char word[64];
    char read_back[64] = "";
    ck_assert(ml_shell_word(cases[_i].text, word, sizeof(word)));
    ck_assert_int_eq(setenv("WORD", word, 1), 0);
    FILE *shell = popen("bash -c 'eval \"printf %s $WORD\"'", "re");
    ck_assert_ptr_nonnull(shell);
    const size_t count = fread(read_back, 1, sizeof(read_back) - 1, shell);
    ck_assert_int_eq(pclose(shell), 0);
    ck_assert_uint_eq(count, strlen(cases[_i].text));
    ck_assert_str_eq(read_back, cases[_i].text);
}
END_TEST

START_TEST(what_does_not_fit_is_no_word) {
    char word[6];
    ck_assert(ml_shell_word("'", word, sizeof(word)) == false);
    ck_assert_str_eq(word, "");
    ck_assert(ml_shell_word("a b", word, sizeof(word)));
    ck_assert(!ml_shell_word("a bc", word, sizeof(word)));
    ck_assert_str_eq(word, "");
}
END_TEST

int main(void) {
    const int count = sizeof(cases) / sizeof(cases[0]);
    TCase *tcase = tcase_create("shell_word");
    tcase_add_loop_test(tcase, a_word_is_one_for_a_shell_and_plain_for_a_terminal, 0, count);
    tcase_add_loop_test(tcase, a_shell_reads_what_was_meant, 0, count);
    tcase_add_test(tcase, what_does_not_fit_is_no_word);
    return run_suite("base/shell_word", tcase);
}
