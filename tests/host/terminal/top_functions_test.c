#include "host/terminal/top_functions.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/printable.h"
#include "tests/suite.h"

START_TEST(a_table_is_read_by_the_names_of_its_columns) {
    char text[] = "live_bytes,peak_bytes,live_blocks,name,module\n"
                  "100,7,2,\"f(int, \"\"x\"\")\",\"lib.so\"\n"
                  "0,9,0,\"freed\",\"lib.so\"\n"
                  "5,9,1,\"'-[A b]\",\"\x1b[2J\"\n";
    char headless[] = "live_bytes,name\n1,a\n";
    char empty[] = "";
    struct ml_top_function *rows = NULL;
    size_t count = 0;
    ck_assert(ml_top_functions_read(text, &rows, &count));
    ck_assert_uint_eq(count, 2); /* what holds nothing is no row */
    ck_assert_uint_eq(rows[0].live_bytes, 100);
    ck_assert_uint_eq(rows[0].live_blocks, 2);
    ck_assert_str_eq(rows[0].name, "f(int, \"x\")");
    ck_assert_str_eq(rows[0].module, "lib.so");
    ck_assert_str_eq(rows[1].name, "-[A b]");
    ck_assert_str_eq(rows[1].module, "?[2J");
    free(rows);
    ck_assert(!ml_top_functions_read(headless, &rows, &count));
    ck_assert(!ml_top_functions_read(empty, &rows, &count));
}
END_TEST

START_TEST(growth_is_by_name_and_module_and_orders_rows) {
    struct ml_top_function now[] = {
        {.name = "c", .module = "m", .live_bytes = 7},
        {.name = "a", .module = "m", .live_bytes = 50},
        {.name = "a", .module = "n", .live_bytes = 9},
    };
    struct ml_top_function before[] = {
        {.name = "a", .module = "n", .live_bytes = 1},
        {.name = "a", .module = "m", .live_bytes = 60},
        {.name = "b", .module = "m", .live_bytes = 60},
    };
    ml_top_functions_growth(now, 3, before, 3);
    ml_top_functions_sort(now, 3, ML_TOP_SORT_GROWTH);
    ck_assert_str_eq(now[0].module, "n");
    ck_assert_int_eq(now[0].growth_bytes, 8);
    ck_assert_int_eq(now[1].growth_bytes, 7); /* it is new */
    ck_assert_int_eq(now[2].growth_bytes, -10);
    ml_top_functions_sort(now, 3, ML_TOP_SORT_HEAP);
    ck_assert_uint_eq(now[0].live_bytes, 50);
    ck_assert_uint_eq(ml_top_functions_filter(now, 3, "C"), 1);
    ck_assert_str_eq(now[0].name, "c");
    ml_top_functions_growth(NULL, 0, NULL, 0);
    ml_top_functions_sort(NULL, 0, ML_TOP_SORT_HEAP);
}
END_TEST

START_TEST(lines_of_functions_fit_every_width) {
    struct ml_top_function row = {
        .name = "\xe6\xbc\xa2\xe5\xad\x97",
        .module = "lib.so",
        .live_bytes = UINT64_MAX,
        .live_blocks = UINT64_MAX,
        .has_growth = true,
        .growth_bytes = -1024};
    char line[ML_TOP_LINE_BYTES];
    for (size_t columns = 0; columns < 120; columns++) {
        ml_top_functions_line(&row, columns, line);
        ck_assert_uint_le(ml_printable_columns(line), columns);
        ml_top_functions_head(ML_TOP_SORT_HEAP, columns, line);
        ck_assert_uint_le(ml_printable_columns(line), columns);
    }
    ml_top_functions_line(&row, 80, line);
    ck_assert_ptr_nonnull(strstr(line, "-1.0 KiB"));
    ck_assert_ptr_nonnull(strstr(line, row.name));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("top_functions");
    tcase_add_test(tcase, a_table_is_read_by_the_names_of_its_columns);
    tcase_add_test(tcase, growth_is_by_name_and_module_and_orders_rows);
    tcase_add_test(tcase, lines_of_functions_fit_every_width);
    return run_suite("host/top_functions", tcase);
}
