#include "tools/analyzer/symbols/breakpad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

static const uint8_t build_id[20] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x10, 0x32,
                                     0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0xaa, 0xbb, 0xcc, 0xdd};

#define MODULE "MODULE Linux x86_64 67452301AB89EFCD1032547698BADCFE0 prog\n"
#define CODE_ID "INFO CODE_ID 0123456789ABCDEF1032547698BADCFEAABBCCDD\n"

static char path[] = "/tmp/memlog-breakpad-XXXXXX";
static struct ml_breakpad breakpad;

static bool read_text(const char *text) {
    FILE *file = NULL;

    ml_breakpad_fini(&breakpad);
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
    file = fdopen(mkstemp(path), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    return ml_breakpad_read(&breakpad, path, build_id, sizeof build_id);
}

static void teardown(void) {
    ml_breakpad_fini(&breakpad);
    unlink(path);
}

/* "inner a.c:3 < outer b.c:9" */
static const char *told(uint64_t address) {
    static char text[1024];
    struct ml_breakpad_frame frames[8];
    size_t count = ml_breakpad_find(&breakpad, address, frames, 8);
    size_t at = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(
            text + at,
            sizeof text - at,
            "%s%s%s%s %s:%u",
            i > 0 ? " < " : "",
            frames[i].name,
            frames[i].is_merged ? "=" : "",
            frames[i].is_inlined ? "~" : "",
            frames[i].file,
            frames[i].line
        );
    }
    return text;
}

START_TEST(the_identifier_is_a_guid_of_the_build_id) {
    char id[ML_BREAKPAD_ID_BYTES];

    ck_assert(ml_breakpad_id(build_id, sizeof build_id, id));
    ck_assert_str_eq(id, "67452301AB89EFCD1032547698BADCFE0");
    ck_assert(!ml_breakpad_id(build_id, 15, id));
}
END_TEST

START_TEST(functions_have_files_and_lines) {
    ck_assert(read_text(MODULE CODE_ID "FILE 0 a.c\n"
                                       "FILE 7 dir with blanks/b.c\n"
                                       "FUNC 1000 20 0 first(int, char)\n"
                                       "1000 8 12 7\n"
                                       "1008 18 13 0\n"
                                       "FUNC m 2000 10 8 second\n"
                                       "PUBLIC 3000 0 third\n"
                                       "STACK CFI INIT 1000 20 .cfa: $rsp 8 +\n"));
    ck_assert_str_eq(told(0x1000), "first(int, char) dir with blanks/b.c:12");
    ck_assert_str_eq(told(0x1007), "first(int, char) dir with blanks/b.c:12");
    ck_assert_str_eq(told(0x101f), "first(int, char) a.c:13");
    ck_assert_str_eq(told(0x1020), "");
    ck_assert_str_eq(told(0x0fff), "");
    ck_assert_str_eq(told(0x200f), "second= :0");
    ck_assert_str_eq(told(0x2010), "");
    ck_assert_str_eq(told(0x3fff), "third :0");
}
END_TEST

START_TEST(inlined_functions_stand_inside_their_callers) {
    ck_assert(read_text(MODULE "FILE 1 outer.cc\n"
                               "FILE 2 middle.h\n"
                               "FILE 3 inner.h\n"
                               "INLINE_ORIGIN 5 middle\n"
                               "INLINE_ORIGIN 6 inner\n"
                               "FUNC 1000 100 0 outer\n"
                               "INLINE 0 40 1 5 1010 20 1080 10\n"
                               "INLINE 1 50 2 6 1018 8\n"
                               "1000 10 39 1\n"
                               "1010 8 51 2\n"
                               "1018 8 60 3\n"
                               "1020 e0 41 1\n"));
    ck_assert_str_eq(told(0x1000), "outer outer.cc:39");
    ck_assert_str_eq(told(0x1010), "middle~ middle.h:51 < outer outer.cc:40");
    ck_assert_str_eq(told(0x1018), "inner~ inner.h:60 < middle~ middle.h:50 < outer outer.cc:40");
    ck_assert_str_eq(told(0x1088), "middle~ outer.cc:41 < outer outer.cc:40");
    ck_assert_str_eq(told(0x10ff), "outer outer.cc:41");
}
END_TEST

START_TEST(a_file_of_another_module_gives_nothing) {
    ck_assert(read_text(MODULE "FUNC 0 10 0 f\n"));
    ck_assert(
        !read_text("MODULE Linux x86_64 67452301AB89EFCD1032547698BADCFF0 prog\nFUNC 0 10 0 f\n")
    );
    ck_assert(!read_text("FUNC 0 10 0 f\n" MODULE));
    ck_assert(!read_text(MODULE
                         "INFO CODE_ID 0123456789ABCDEF1032547698BADCFEAABBCCDE\nFUNC 0 10 0 f\n"));
    ck_assert(!read_text(MODULE "INFO CODE_ID 01\nFUNC 0 10 0 f\n"));
    ck_assert(!read_text(""));
    ck_assert_uint_eq(breakpad.functions_count, 0);
}
END_TEST

START_TEST(lines_that_are_none_are_skipped) {
    ck_assert(read_text(MODULE "FILE x y\n"
                               "FUNC\n"
                               "FUNC 10\n"
                               "FUNC -1 10 0 minus\n"
                               "FUNC ffffffffffffffff 10 0 beyond\n"
                               "FUNC 10 0 0 empty\n"
                               "1000 8 12 7\n"
                               "INLINE 0 1 2 3 10 10\n"
                               "FUNC 1000 10 0 whole\r\n"
                               "1000\n"
                               "1000 0 3 4\n"
                               "INLINE 0 1 2\n"
                               "INLINE 0 1 2 3 1000 8 nonsense\n"
                               "\n"));
    ck_assert_uint_eq(breakpad.functions_count, 1);
    ck_assert_str_eq(told(0x1000), "~ :0 < whole :1");
    ck_assert_str_eq(told(0x1008), "whole :0");
}
END_TEST

START_TEST(a_fifo_is_no_symbol_file) {
    ck_assert(read_text(MODULE "FUNC 0 10 0 f\n"));
    ml_breakpad_fini(&breakpad);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!ml_breakpad_read(&breakpad, path, build_id, sizeof build_id));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tools/breakpad");
    TCase *tests = tcase_create("all");
    SRunner *runner = NULL;
    int failed = 0;

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, the_identifier_is_a_guid_of_the_build_id);
    tcase_add_test(tests, functions_have_files_and_lines);
    tcase_add_test(tests, inlined_functions_stand_inside_their_callers);
    tcase_add_test(tests, a_file_of_another_module_gives_nothing);
    tcase_add_test(tests, lines_that_are_none_are_skipped);
    tcase_add_test(tests, a_fifo_is_no_symbol_file);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
