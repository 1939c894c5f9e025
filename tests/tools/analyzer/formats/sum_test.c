#include "tools/analyzer/formats/sum.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

enum { MIB = 1 << 20, COLUMNS = 65 };

static char text[ML_SUM_TEXT_BYTES];

/* Tenths of all figures behind the sum. */
static long tenths_of_parts(void) {
    long tenths = 0;

    for (char *at = strpbrk(text, "=+"); at; at = strpbrk(at + 1, "=+")) {
        tenths += (long)(strtod(at + 1, NULL) * 10 + 0.5);
    }
    return tenths;
}

START_TEST(says_what_a_sum_is_made_of) {
    const struct ml_sum_part parts[] = {
        {"heap", (uint64_t)12 * MIB},
        {"files", (uint64_t)38 * MIB},
        {"mapped", (uint64_t)243 * MIB}};

    ck_assert_str_eq(ml_sum_text(parts, 3, 0, text), "293 MiB = 12 heap + 243 mapped + 38 files");
}
END_TEST

START_TEST(rounds_so_that_the_line_adds_up) {
    /* Each third of 10.0 MiB is 3.33: one of them has to be printed as 3.4. */
    const struct ml_sum_part thirds[] = {
        {"a", 10 * MIB / 3}, {"b", 10 * MIB / 3}, {"c", 10 * MIB - 2 * (10 * MIB / 3)}};

    ck_assert_str_eq(ml_sum_text(thirds, 3, 0, text), "10.0 MiB = 3.3 a + 3.4 c + 3.3 b");
}
END_TEST

START_TEST(adds_up_whatever_the_parts_are) {
    uint32_t seed = 1;

    for (int round = 0; round < 20000; round++) {
        struct ml_sum_part parts[ML_SUM_PARTS_MAX];
        const size_t count = (size_t)round % 12 + 1;
        uint64_t sum = 0;
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1664525 + 1013904223;
            parts[i] = (struct ml_sum_part){"name", seed >> (seed >> 27)};
            sum += parts[i].bytes;
        }
        ml_sum_text(parts, count, (size_t)(round % 3) * COLUMNS, text);
        if (sum > 0) {
            ck_assert_msg(tenths_of_parts() == (long)(strtod(text, NULL) * 10 + 0.5), "%s", text);
        }
        ck_assert(round % 3 == 0 || strlen(text) <= (size_t)(round % 3) * COLUMNS);
    }
}
END_TEST

START_TEST(puts_together_what_does_not_fit) {
    const struct ml_sum_part parts[] = {
        {"heap", MIB}, {"code", 2 * MIB}, {"files", 3 * MIB}, {"mapped", 4 * MIB}};

    ck_assert_str_eq(
        ml_sum_text(parts, 4, 44, text), "10.0 MiB = 1.0 heap + 4.0 mapped + 5.0 rest"
    );
    ck_assert_str_eq(ml_sum_text(parts, 4, 1, text), "10.0 MiB = 10.0 rest");
}
END_TEST

START_TEST(leaves_out_what_is_nothing) {
    const struct ml_sum_part parts[] = {{"heap", 0}, {"code", (uint64_t)200 * MIB}, {"data", 9}};

    ck_assert_str_eq(ml_sum_text(parts, 3, 0, text), "200 MiB = 200 code");
    ck_assert_str_eq(ml_sum_text(parts, 1, 0, text), "0 B");
    ck_assert_str_eq(ml_sum_text(NULL, 0, 0, text), "0 B");
}
END_TEST

START_TEST(holds_the_largest_figures) {
    const struct ml_sum_part parts[] = {{"one", UINT64_MAX / 2}, {"other", UINT64_MAX / 2 + 1}};

    ck_assert_str_eq(ml_sum_text(parts, 2, 0, text), "16.0 EiB = 8.0 one + 8.0 other");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, says_what_a_sum_is_made_of);
    tcase_add_test(tests, rounds_so_that_the_line_adds_up);
    tcase_add_test(tests, adds_up_whatever_the_parts_are);
    tcase_add_test(tests, puts_together_what_does_not_fit);
    tcase_add_test(tests, leaves_out_what_is_nothing);
    tcase_add_test(tests, holds_the_largest_figures);
    return run_suite("tools/sum", tests);
}
