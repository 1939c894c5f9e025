#include "tools/analyzer/model/string_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_string_table table;

static void end(void) {
    ml_string_table_fini(&table);
}

static uint32_t add(const char *text) {
    return ml_string_table_add(&table, text, strlen(text));
}

START_TEST(each_string_has_one_number_from_0_in_order) {
    ck_assert_uint_eq(add(""), 0);
    ck_assert_uint_eq(add("main"), 1);
    ck_assert_uint_eq(add("mai"), 2);
    ck_assert_uint_eq(add("main"), 1);
    ck_assert_uint_eq(add(""), 0);
    ck_assert_uint_eq(table.count, 3);
    ck_assert_uint_eq(table.strings[2].count_bytes, 3);
    ck_assert_str_eq(table.strings[2].bytes, "mai");
}
END_TEST

START_TEST(bytes_behind_a_nul_tell_strings_apart) {
    ck_assert_uint_eq(ml_string_table_add(&table, "a\0b", 3), 0);
    ck_assert_uint_eq(ml_string_table_add(&table, "a\0c", 3), 1);
    ck_assert_uint_eq(ml_string_table_add(&table, "a", 1), 2);
    ck_assert_uint_eq(ml_string_table_add(&table, "a\0b", 3), 0);
}
END_TEST

START_TEST(a_copy_outlives_what_it_was_made_of) {
    char buffer[8];

    snprintf(buffer, sizeof buffer, "main");
    ck_assert_uint_eq(ml_string_table_copy(&table, buffer, 4), 0);
    memset(buffer, 'x', sizeof buffer);
    ck_assert_str_eq(table.strings[0].bytes, "main");
    ck_assert_uint_eq(ml_string_table_copy(&table, "main", 4), 0);
    ck_assert_uint_eq(add("main"), 0);
    ck_assert_ptr_ne(table.strings[0].bytes, buffer);
}
END_TEST

START_TEST(a_copy_of_some_bytes_ends_in_nul) {
    ck_assert_uint_eq(ml_string_table_copy(&table, "mainly", 4), 0);
    ck_assert_str_eq(table.strings[0].bytes, "main");
    ck_assert_uint_eq(table.strings[0].count_bytes, 4);
}
END_TEST

/* Enough for the table and its index to grow many times. */
START_TEST(numbers_stay_while_the_table_grows) {
    enum { STRINGS = 10000 };
    char buffer[16];

    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < STRINGS; i++) {
            int count = snprintf(buffer, sizeof buffer, "f%u", i);
            ck_assert_uint_eq(ml_string_table_copy(&table, buffer, (size_t)count), i);
        }
    }
    ck_assert_uint_eq(table.count, STRINGS);
    ck_assert_str_eq(table.strings[STRINGS - 1].bytes, "f9999");
}
END_TEST

START_TEST(an_ended_table_is_an_empty_one) {
    ck_assert_uint_eq(ml_string_table_copy(&table, "main", 4), 0);
    ml_string_table_fini(&table);
    ck_assert_uint_eq(table.count, 0);
    ck_assert_uint_eq(add("other"), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_test(tests, each_string_has_one_number_from_0_in_order);
    tcase_add_test(tests, bytes_behind_a_nul_tell_strings_apart);
    tcase_add_test(tests, a_copy_outlives_what_it_was_made_of);
    tcase_add_test(tests, a_copy_of_some_bytes_ends_in_nul);
    tcase_add_test(tests, numbers_stay_while_the_table_grows);
    tcase_add_test(tests, an_ended_table_is_an_empty_one);
    return run_suite("tools/string_table", tests);
}
