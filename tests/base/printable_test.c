#include "base/printable.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <check.h>

#include "base/utf8.h"
#include "tests/suite.h"

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
    const size_t count =
        ml_printable_copy(cases[_i].bytes, strlen(cases[_i].bytes), out, sizeof(out));
    ck_assert_str_eq(out, cases[_i].clean);
    ck_assert_uint_eq(count, strlen(out));
}
END_TEST

START_TEST(too_long_a_text_is_cut_between_two_characters) {
    char out[5];
    ck_assert_uint_eq(ml_printable_copy("abc\xc3\xb6z", 6, out, sizeof(out)), 3);
    ck_assert_str_eq(out, "abc");
    ck_assert_uint_eq(ml_printable_copy("ab\xc3\xb6z", 5, out, sizeof(out)), 4);
    ck_assert_str_eq(out, "ab\xc3\xb6");
    ck_assert_uint_eq(ml_printable_copy("abc", 3, out, 1), 0);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(a_nul_is_a_byte_like_others) {
    char out[8];
    ck_assert_uint_eq(ml_printable_copy("a\0b", 3, out, sizeof(out)), 3);
    ck_assert_str_eq(out, "a?b");
}
END_TEST

/* Two spellings of a character, in three and four bytes too: enough for those below. */
static const char *spell(uint32_t character) {
    static char bytes[5];
    size_t count = 0;
    if (character < 0x80) {
        bytes[count++] = (char)character;
    } else if (character < 0x800) {
        bytes[count++] = (char)(0xc0 | character >> 6);
    } else if (character < 0x10000) {
        bytes[count++] = (char)(0xe0 | character >> 12);
        bytes[count++] = (char)(0x80 | (character >> 6 & 0x3f));
    } else {
        bytes[count++] = (char)(0xf0 | character >> 18);
        bytes[count++] = (char)(0x80 | (character >> 12 & 0x3f));
        bytes[count++] = (char)(0x80 | (character >> 6 & 0x3f));
    }
    if (character >= 0x80) {
        bytes[count++] = (char)(0x80 | (character & 0x3f));
    }
    bytes[count] = '\0';
    return bytes;
}

START_TEST(no_control_and_no_mark_of_direction_passes) {
    static const uint32_t others[] = {0x7f,   0xad,   0x061c, 0x180e,  0x200b, 0x200c, 0x200d,
                                      0x200e, 0x200f, 0x2028, 0x2029,  0x202a, 0x202b, 0x202c,
                                      0x202d, 0x202e, 0x2066, 0x2067,  0x2068, 0x2069, 0x206f,
                                      0xfeff, 0xfff9, 0xfffb, 0xe0001, 0xe007f};
    for (uint32_t character = 1; character < 0xa0; character++) {
        char out[8];
        const char *bytes = spell(character);
        (void)ml_printable_copy(bytes, strlen(bytes), out, sizeof(out));
        const bool is_control = character < 0x20 || character >= 0x7f;
        ck_assert_str_eq(out, is_control ? "?" : bytes);
        ck_assert(ml_printable(character) == !is_control);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char text[8];
        (void)snprintf(text, sizeof(text), "%s", spell(others[i]));
        ck_assert(!ml_printable(others[i]));
        ml_printable_clean(text);
        ck_assert_str_eq(text, "?");
    }
}
END_TEST

START_TEST(a_file_gets_what_a_copy_would_be) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t count = 0;
        FILE *out = open_memstream(&text, &count);
        ml_printable_put_text(out, cases[i].bytes);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_str_eq(text, cases[i].clean);
        free(text);
    }
}
END_TEST

#define WIDE "\xe6\xbc\xa2"  /* two columns */
#define ACCENTED "e\xcc\x81" /* one, of two characters */

START_TEST(columns_are_those_of_what_is_shown) {
    ck_assert_uint_eq(ml_printable_columns("abc"), 3);
    ck_assert_uint_eq(ml_printable_columns("\x1b\xc2\x9b\xff"), 3);
    ck_assert_uint_eq(ml_printable_columns(WIDE ACCENTED), 3);
}
END_TEST

START_TEST(no_cut_parts_a_wide_or_a_combined_character) {
    static const char text[] = "a" WIDE ACCENTED "\xff" WIDE "z"; /* 1 2 1 1 2 1 */
    static const size_t heads[] = {0, 1, 1, 4, 7, 8, 8, 11, 12, 12};
    static const size_t tails[] = {12, 11, 11, 8, 7, 4, 4, 1, 0, 0};
    for (size_t columns = 0; columns < sizeof(heads) / sizeof(heads[0]); columns++) {
        ck_assert_uint_eq(ml_printable_head(text, columns), heads[columns]);
        ck_assert_uint_eq(ml_printable_tail(text, columns), tails[columns]);
    }
}
END_TEST

/* glibc's own table, of a Unicode that may be another: nearly all of 120,000 agree. Unicode 16,
 * which glibc has since 2.41, made signs as hexagrams wide: 356 are others there. */
START_TEST(widths_are_those_of_libc) {
    int others = 0;
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    for (uint32_t character = 0xa0; character < 0x20000; character++) {
        const int width = wcwidth((wchar_t)character);
        if (ml_printable(character) && width >= 0 && (character < 0xd800 || character > 0xf8ff)) {
            others += ml_printable_columns(spell(character)) != (size_t)width;
        }
    }
    ck_assert_int_lt(others, 400);
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
        const size_t count = ml_printable_copy(bytes, (size_t)round % 25, out, sizeof(out));
        ck_assert_uint_lt(count, sizeof(out));
        for (size_t pos = 0; pos < count;) {
            const size_t step = ml_utf8_length(out + pos, count - pos);
            ck_assert_uint_gt(step, 0);
            ck_assert_int_ge((unsigned char)out[pos], ' ');
            pos += step;
        }
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("printable");
    tcase_add_loop_test(
        tcase, what_is_not_plain_becomes_a_question_mark, 0, sizeof(cases) / sizeof(cases[0])
    );
    tcase_add_test(tcase, too_long_a_text_is_cut_between_two_characters);
    tcase_add_test(tcase, a_nul_is_a_byte_like_others);
    tcase_add_test(tcase, no_control_and_no_mark_of_direction_passes);
    tcase_add_test(tcase, a_file_gets_what_a_copy_would_be);
    tcase_add_test(tcase, columns_are_those_of_what_is_shown);
    tcase_add_test(tcase, no_cut_parts_a_wide_or_a_combined_character);
    tcase_add_test(tcase, widths_are_those_of_libc);
    tcase_add_test(tcase, no_bytes_at_all_break_it);
    return run_suite("base/printable", tcase);
}
