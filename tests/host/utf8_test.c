#include "host/utf8.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

static const struct {
    const char *bytes;
    const char *clean;
} cases[] = {
    {"", ""},
    {"before the migration", "before the migration"},
    {"gr\xc3\xb6\xc3\x9f"
     "er \xe2\x82\xac \xf0\x9f\x98\x80",
     "gr\xc3\xb6\xc3\x9f"
     "er \xe2\x82\xac \xf0\x9f\x98\x80"},
    {"two\nlines\ttab\x1b[31mred\x7f", "two?lines?tab?[31mred?"},
    {"\xc2\x9b"
     "31m",
     "?31m"},                               /* a control of the second set: CSI */
    {"a\xe2\x80\xaetxt.exe", "a?txt.exe"},  /* right to left from here */
    {"a\xe2\x80\xa8z\xef\xbb\xbf", "a?z?"}, /* line separator, byte order mark */
    {"\xff\xfe", "??"},
    {"\xc3", "?"},
    {"\xc0\xaf", "??"},
    {"\xed\xa0\x80", "???"},
    {"<script>\"&'", "<script>\"&'"}, /* whoever draws it escapes it */
};

START_TEST(what_is_not_plain_becomes_a_question_mark) {
    char out[64];
    const size_t count = ml_utf8_clean(cases[_i].bytes, strlen(cases[_i].bytes), out, sizeof(out));
    ck_assert_str_eq(out, cases[_i].clean);
    ck_assert_uint_eq(count, strlen(out));
}
END_TEST

START_TEST(too_long_a_text_is_cut_between_two_characters) {
    char out[5];
    ck_assert_uint_eq(ml_utf8_clean("abc\xc3\xb6z", 6, out, sizeof(out)), 3);
    ck_assert_str_eq(out, "abc");
    ck_assert_uint_eq(ml_utf8_clean("ab\xc3\xb6z", 5, out, sizeof(out)), 4);
    ck_assert_str_eq(out, "ab\xc3\xb6");
    ck_assert_uint_eq(ml_utf8_clean("abc", 3, out, 1), 0);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(a_nul_is_a_byte_like_others) {
    char out[8];
    ck_assert_uint_eq(ml_utf8_clean("a\0b", 3, out, sizeof(out)), 3);
    ck_assert_str_eq(out, "a?b");
}
END_TEST

/* Whatever comes in: what goes out is UTF-8, and fits. */
START_TEST(no_bytes_at_all_break_it) {
    unsigned state = 1;
    for (int round = 0; round < 20000; round++) {
        char bytes[24];
        char out[17];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            state = state * 1103515245u + 12345u;
            bytes[i] = (char)(state >> 16);
        }
        const size_t count = ml_utf8_clean(bytes, (size_t)round % 25, out, sizeof(out));
        ck_assert_uint_lt(count, sizeof(out));
        for (size_t pos = 0; pos < count;) {
            const size_t step = ml_utf8_count((const unsigned char *)out + pos, count - pos);
            ck_assert_uint_gt(step, 0);
            ck_assert_int_ge((unsigned char)out[pos], ' ');
            pos += step;
        }
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("utf8");
    tcase_add_loop_test(
        tcase, what_is_not_plain_becomes_a_question_mark, 0, sizeof(cases) / sizeof(cases[0])
    );
    tcase_add_test(tcase, too_long_a_text_is_cut_between_two_characters);
    tcase_add_test(tcase, a_nul_is_a_byte_like_others);
    tcase_add_test(tcase, no_bytes_at_all_break_it);
    Suite *suite = suite_create("host/utf8");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
