#include "tools/analyzer/fleet/rows.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_fleet_rows rows;

static uint32_t push(uint32_t parent, const char *function) {
    const struct ml_fleet_frame frame = {
        .function = ml_fleet_string(&rows, function, MEMLOG_FLEET_MAX_NAME_BYTES)};
    const uint32_t stack = ml_fleet_stack(&rows, parent, &frame);

    ck_assert(ml_fleet_rows_check(&rows));
    return stack;
}

START_TEST(equal_stacks_are_one) {
    const uint32_t outer = push(ML_FLEET_NO_STACK, "main");
    const uint32_t inner = push(outer, "leak");

    ck_assert_uint_eq(push(outer, "leak"), inner);
    ck_assert_uint_eq(push(ML_FLEET_NO_STACK, "main"), outer);
    ck_assert_uint_ne(push(inner, "leak"), inner);
    ck_assert_uint_eq(rows.stacks_count, 3);
    ck_assert_uint_eq(rows.frames_count, 2);
    ml_fleet_rows_fini(&rows);
}
END_TEST

START_TEST(rows_of_equal_keys_add_up_and_never_wrap) {
    struct ml_fleet_row row = {
        .stack = push(ML_FLEET_NO_STACK, "main"),
        .figures = {.live_bytes = 5, .total_bytes = UINT64_MAX - 1}};

    ml_fleet_row(&rows, &row);
    ml_fleet_row(&rows, &row);
    ck_assert_uint_eq(rows.rows_count, 1);
    ck_assert_uint_eq(rows.rows[0].figures.live_bytes, 10);
    ck_assert_uint_eq(rows.rows[0].figures.total_bytes, UINT64_MAX);
    row.role = ml_fleet_string(&rows, "gpu", MEMLOG_FLEET_MAX_WORD_BYTES);
    ml_fleet_row(&rows, &row);
    ck_assert_uint_eq(rows.rows_count, 2);
    ck_assert(ml_fleet_rows_check(&rows));
    ml_fleet_rows_fini(&rows);
}
END_TEST

/* Names are cut at a whole character, and have none that a terminal would obey. */
START_TEST(strings_are_plain_and_short) {
    const uint32_t plain = ml_fleet_string(&rows, "a\x1b[31m\n", MEMLOG_FLEET_MAX_NAME_BYTES);
    const uint32_t cut = ml_fleet_string(&rows, "abc\xc3\xa4", 4);
    struct ml_string text = ml_fleet_string_of(&rows, plain);

    ck_assert_uint_eq(text.count_bytes, 7);
    ck_assert_mem_eq(text.data, "a?[31m?", 7);
    text = ml_fleet_string_of(&rows, cut);
    ck_assert_uint_eq(text.count_bytes, 3);
    ck_assert_uint_eq(ml_fleet_string(&rows, "", 4), 0);
    ck_assert_uint_eq(ml_fleet_string_of(&rows, 12345).count_bytes, 0);
    ml_fleet_rows_fini(&rows);
}
END_TEST

START_TEST(a_stack_ends_at_the_depth_of_the_contract) {
    uint32_t stack = ML_FLEET_NO_STACK;

    for (uint32_t i = 0; i < MEMLOG_FLEET_MAX_FRAMES_IN_STACK + 10; i++) {
        stack = push(stack, "recursive");
    }
    ck_assert_uint_eq(rows.stacks_count, MEMLOG_FLEET_MAX_FRAMES_IN_STACK);
    ck_assert_uint_eq(rows.stacks[stack - 1].depth, MEMLOG_FLEET_MAX_FRAMES_IN_STACK);
    ml_fleet_rows_fini(&rows);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("rows");
    tcase_add_test(tests, equal_stacks_are_one);
    tcase_add_test(tests, rows_of_equal_keys_add_up_and_never_wrap);
    tcase_add_test(tests, strings_are_plain_and_short);
    tcase_add_test(tests, a_stack_ends_at_the_depth_of_the_contract);
    return run_suite("rows", tests);
}
