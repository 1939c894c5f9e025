#include "base/size.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(reads_sizes_with_suffixes_of_1024) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"4096", 4096},
        {"4096B", 4096},
        {"4K", 4096},
        {"4k", 4096},
        {"4KB", 4096},
        {"4KiB", 4096},
        {"2M", 2097152},
        {"1g", 1073741824},
        {"16KiB", 16384},
        {"16kib", 16384},
        {"16MB", 16777216},
        {"2T", (uint64_t)2 << 40},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t bytes = 99;
        ck_assert(ml_size_read(cases[i].text, &bytes));
        ck_assert_uint_eq(bytes, cases[i].bytes);
    }
}
END_TEST

START_TEST(refuses_what_is_not_wholly_a_size) {
    static const char *const wrong[] = {
        "", "K", "-1", "+1", " 1", "1 ", "1X", "1KK", "1iB", "1KiBB", "1K B", "0x10", "1.5M"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint64_t bytes = 99;
        ck_assert(!ml_size_read(wrong[i], &bytes));
        ck_assert_uint_eq(bytes, 99);
    }
    uint64_t bytes = 99;
    ck_assert(!ml_size_read("9223372036854775808", &bytes));
    ck_assert(!ml_size_read("8589934592G", &bytes));
    ck_assert(!ml_size_read("99999999999999999999999", &bytes));
    ck_assert_uint_eq(bytes, 99);
}
END_TEST

START_TEST(reads_counts_up_to_their_limit) {
    uint64_t count = 99;
    ck_assert(ml_count_read("10", 10, &count));
    ck_assert_uint_eq(count, 10);
    ck_assert(!ml_count_read("11", 10, &count));
    ck_assert(!ml_count_read("1K", 10, &count));
    ck_assert(!ml_count_read("2", 1, &count)); /* a digit above the limit */
    ck_assert_uint_eq(count, 10);
}
END_TEST

START_TEST(writes_sizes_for_people) {
    char text[ML_SIZE_TEXT_BYTES];
    ck_assert_str_eq(ml_size_text(0, text), "0 B");
    ck_assert_str_eq(ml_size_text(1023, text), "1023 B");
    ck_assert_str_eq(ml_size_text(1280, text), "1.3 KiB");
    ck_assert_str_eq(ml_size_text(1536, text), "1.5 KiB");
    ck_assert_str_eq(ml_size_text((uint64_t)3 << 30, text), "3.0 GiB");
    ck_assert_str_eq(ml_size_text(UINT64_MAX, text), "16.0 EiB");
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("size");
    tcase_add_test(tcase, reads_sizes_with_suffixes_of_1024);
    tcase_add_test(tcase, refuses_what_is_not_wholly_a_size);
    tcase_add_test(tcase, reads_counts_up_to_their_limit);
    tcase_add_test(tcase, writes_sizes_for_people);
    return run_suite("base/size", tcase);
}
