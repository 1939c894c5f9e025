#include "base/character_width.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(letters_take_one_column) {
    static const uint32_t narrow[] = {' ', 'a', '~', 0xe9, 0x2ff, 0x370, 0x430, 0x10ffff};
    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
        ck_assert_uint_eq(ml_character_width(narrow[i]), 1);
    }
}
END_TEST

/* The first and the last range of the table, with what stands beside them. */
START_TEST(marks_join_the_character_before_them) {
    static const uint32_t combining[] = {0x300, 0x36f, 0x483, 0x20d0, 0xfe0f, 0xe0100, 0xe01ef};
    for (size_t i = 0; i < sizeof(combining) / sizeof(combining[0]); i++) {
        ck_assert_uint_eq(ml_character_width(combining[i]), 0);
    }
    ck_assert_uint_eq(ml_character_width(0xe00ff), 1);
    ck_assert_uint_eq(ml_character_width(0xe01f0), 1);
}
END_TEST

START_TEST(ideographs_and_emoji_take_two) {
    static const uint32_t wide[] = {
        0x1100, 0x115f, 0x3042, 0x4e2d, 0xac00, 0xff01, 0x1f600, 0x20000, 0x3fffd};
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        ck_assert_uint_eq(ml_character_width(wide[i]), 2);
    }
    ck_assert_uint_eq(ml_character_width(0xff61), 1); /* a half-width form */
    ck_assert_uint_eq(ml_character_width(0x3fffe), 1);
}
END_TEST

/* Tables that are searched by halves: a range that stood out of order would hide others. */
START_TEST(hangul_is_put_together_from_a_wide_part_and_two_that_combine) {
    for (uint32_t character = 0x1100; character <= 0x11ff; character++) {
        ck_assert_uint_eq(ml_character_width(character), character <= 0x115f ? 2 : 0);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("character_width");
    tcase_add_test(tcase, letters_take_one_column);
    tcase_add_test(tcase, marks_join_the_character_before_them);
    tcase_add_test(tcase, ideographs_and_emoji_take_two);
    tcase_add_test(tcase, hangul_is_put_together_from_a_wide_part_and_two_that_combine);
    return run_suite("base/character_width", tcase);
}
