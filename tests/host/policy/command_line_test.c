#include "host/policy/command_line.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(parts_bytes_at_their_nuls_and_joins_them_with_blanks) {
    struct ml_command_line line;
    ck_assert_int_eq(ml_command_line_from_bytes(&line, "a\0\0b c", 6), ML_OK);
    ck_assert_uint_eq(line.count, 3);
    ck_assert_str_eq(line.arguments[0], "a");
    ck_assert_str_eq(line.arguments[1], "");
    ck_assert_str_eq(line.arguments[2], "b c");
    ck_assert_ptr_null(line.arguments[3]);
    ck_assert_str_eq(line.joined, "a  b c");
    ml_command_line_fini(&line);
    ck_assert_int_eq(ml_command_line_from_bytes(&line, "", 0), ML_OK);
    ck_assert_uint_eq(line.count, 0);
    ck_assert_str_eq(line.joined, "");
    ml_command_line_fini(&line);
}
END_TEST

START_TEST(cuts_what_is_too_long) {
    char *bytes = malloc(ML_COMMAND_LINE_MAX_BYTES + 10);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'x', ML_COMMAND_LINE_MAX_BYTES + 10);
    struct ml_command_line line;
    ck_assert_int_eq(
        ml_command_line_from_bytes(&line, bytes, ML_COMMAND_LINE_MAX_BYTES + 10), ML_OK
    );
    ck_assert_uint_eq(line.count, 1);
    ck_assert_uint_eq(strlen(line.arguments[0]), ML_COMMAND_LINE_MAX_ARGUMENT_BYTES);
    ml_command_line_fini(&line);
    memset(bytes, 0, ML_COMMAND_LINE_MAX_BYTES);
    ck_assert_int_eq(ml_command_line_from_bytes(&line, bytes, ML_COMMAND_LINE_MAX_BYTES), ML_OK);
    ck_assert_uint_eq(line.count, ML_COMMAND_LINE_MAX_ARGUMENTS);
    ml_command_line_fini(&line);
    free(bytes);
}
END_TEST

START_TEST(an_argv_and_its_bytes_are_the_same_line) {
    char *argv[] = {(char[]){"a"}, (char[]){""}, (char[]){"c"}, NULL};
    struct ml_command_line left;
    struct ml_command_line right;
    ck_assert_int_eq(ml_command_line_from_argv(&left, argv), ML_OK);
    ck_assert_int_eq(ml_command_line_from_bytes(&right, "a\0\0c\0", 5), ML_OK);
    ck_assert(ml_command_line_equal(&left, &right));
    ml_command_line_fini(&right);
    ck_assert_int_eq(ml_command_line_from_bytes(&right, "a\0\0d\0", 5), ML_OK);
    ck_assert(!ml_command_line_equal(&left, &right));
    ml_command_line_fini(&right);
    ml_command_line_fini(&left);
    ck_assert_ptr_null(left.arguments);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("command_line");
    tcase_add_test(tcase, parts_bytes_at_their_nuls_and_joins_them_with_blanks);
    tcase_add_test(tcase, cuts_what_is_too_long);
    tcase_add_test(tcase, an_argv_and_its_bytes_are_the_same_line);
    return run_suite("host/command_line", tcase);
}
