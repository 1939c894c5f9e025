#include "host/terminal/top_model.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/printable.h"
#include "tests/suite.h"

enum { SECOND_NS = 1000000000, HALF_A_SECOND_NS = SECOND_NS / 2 };

START_TEST(rates_come_from_two_looks_at_one_id) {
    struct ml_top_row now[] = {
        {.id = 3, .pid = 7, .heap_bytes = 100, .total_bytes = 900},
        {.id = 1, .pid = 7, .heap_bytes = 100, .total_bytes = 300},
        {.id = 2, .pid = 8, .heap_bytes = 5, .total_bytes = 5},
    };
    struct ml_top_row before[] = {
        {.id = 2, .heap_bytes = 9, .total_bytes = 90},
        {.id = 1, .heap_bytes = 150, .total_bytes = 200},
    };
    ml_top_rates(now, 3, before, 2, HALF_A_SECOND_NS);
    ck_assert_uint_eq(now[0].id, 1);
    ck_assert(now[0].has_rates);
    ck_assert_int_eq(now[0].growth_bytes, -100);
    ck_assert_uint_eq(now[0].allocated_bytes, 200);
    ck_assert(!now[1].has_rates); /* it was started again */
    ck_assert(!now[2].has_rates); /* it is new, and has a pid that was another's */
    ml_top_rates(now, 3, before, 2, 0);
    ck_assert(!now[0].has_rates);
    ml_top_rates(NULL, 0, NULL, 0, SECOND_NS);
}
END_TEST

START_TEST(each_order_has_the_largest_first) {
    struct ml_top_row rows[] = {
        {.pid = 1, .heap_bytes = 1, .private_bytes = 9},
        {.pid = 2, .heap_bytes = 2, .has_rates = true, .growth_bytes = -4, .allocated_bytes = 8},
        {.pid = 3, .heap_bytes = 3, .has_rates = true, .growth_bytes = 4, .allocated_bytes = 7},
    };
    static const uint32_t first[ML_TOP_SORT_COUNT] = {3, 1, 3, 2};
    static const uint32_t last[ML_TOP_SORT_COUNT] = {1, 3, 1, 1};
    for (unsigned by = 0; by < ML_TOP_SORT_COUNT; by++) {
        ml_top_sort(rows, 3, (enum ml_top_sort)by);
        ck_assert_uint_eq(rows[0].pid, first[by]);
        ck_assert_uint_eq(rows[2].pid, last[by]);
    }
}
END_TEST

START_TEST(a_filter_knows_no_case) {
    struct ml_top_row rows[] = {
        {.pid = 1, .name = "Server"}, {.pid = 2, .name = "other"}, {.pid = 3, .name = "a serVer"}};
    ck_assert_uint_eq(ml_top_filter(rows, 3, ""), 3);
    ck_assert_uint_eq(ml_top_filter(rows, 3, "server"), 2);
    ck_assert_uint_eq(rows[0].pid, 1);
    ck_assert_uint_eq(rows[1].pid, 3);
    ck_assert_uint_eq(rows[2].pid, 2); /* none is lost: another text may keep it */
    ck_assert_uint_eq(ml_top_filter(rows, 2, "nobody has it"), 0);
}
END_TEST

START_TEST(lines_fit_every_width) {
    struct ml_top_row row = {
        .pid = UINT32_MAX,
        .heap_bytes = UINT64_MAX,
        .private_bytes = 1,
        .has_rates = true,
        .growth_bytes = -1024,
        .name = "\xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81"};
    char line[ML_TOP_LINE_BYTES];
    for (size_t columns = 0; columns < 200; columns++) {
        ml_top_line(&row, columns, line);
        ck_assert_uint_le(ml_printable_columns(line), columns);
        ml_top_head(ML_TOP_SORT_GROWTH, columns, line);
        ck_assert_uint_le(ml_printable_columns(line), columns);
    }
    ck_assert_ptr_nonnull(strstr(line, ">GROWTH/s"));
    ml_top_line(&row, 80, line);
    ck_assert_ptr_nonnull(strstr(line, "-1.0 KiB"));
    ck_assert_ptr_nonnull(strstr(line, row.name));
    ml_top_line(&row, 60, line);
    ck_assert_ptr_nonnull(strstr(line, row.name));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("top_model");
    tcase_add_test(tcase, rates_come_from_two_looks_at_one_id);
    tcase_add_test(tcase, each_order_has_the_largest_first);
    tcase_add_test(tcase, a_filter_knows_no_case);
    tcase_add_test(tcase, lines_fit_every_width);
    return run_suite("host/top_model", tcase);
}
