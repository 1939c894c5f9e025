#include "ipc/trace/crc32.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

/* The check value of this CRC in Williams, "A painless guide to CRC error detection algorithms". */
START_TEST(answers_the_published_value) {
    ck_assert_uint_eq(ml_crc32(0, "123456789", 9), 0xcbf43926);
}
END_TEST

START_TEST(nothing_changes_nothing) {
    ck_assert_uint_eq(ml_crc32(0, "", 0), 0);
    ck_assert_uint_eq(ml_crc32(0xcbf43926, NULL, 0), 0xcbf43926);
}
END_TEST

START_TEST(goes_on_where_a_call_before_stopped) {
    static const char text[] = "123456789";
    for (size_t cut = 0; cut <= 9; cut++) {
        ck_assert_uint_eq(ml_crc32(ml_crc32(0, text, cut), &text[cut], 9 - cut), 0xcbf43926);
    }
}
END_TEST

START_TEST(finds_each_flipped_bit) {
    for (size_t bit = 0; bit < 72; bit++) {
        char bytes[] = "123456789";
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        ck_assert_uint_ne(ml_crc32(0, bytes, 9), 0xcbf43926);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("crc32");
    tcase_add_test(tcase, answers_the_published_value);
    tcase_add_test(tcase, nothing_changes_nothing);
    tcase_add_test(tcase, goes_on_where_a_call_before_stopped);
    tcase_add_test(tcase, finds_each_flipped_bit);
    return run_suite("ipc/trace/crc32", tcase);
}
