#include "base/csv.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static char *text_of(const char *text) {
    char *written = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&written, &count);
    ml_csv_text(out, text);
    ck_assert_int_eq(fclose(out), 0);
    return written;
}

START_TEST(a_cell_is_shown_and_never_computed) {
    static const struct {
        const char *text;
        const char *written;
    } cases[] = {
        {"", "\"\""},
        {"plain, with a comma", "\"plain, with a comma\""},
        {"say \"so\"", "\"say \"\"so\"\"\""},
        {"=1+1", "\"'=1+1\""},
        {"+1", "\"'+1\""},
        {"-[View draw]", "\"'-[View draw]\""},
        {"@SUM(A1)", "\"'@SUM(A1)\""},
        {"  =1", "\"'  =1\""},
        {"\xef\xbc\x9d"
         "1",
         "\"'\xef\xbc\x9d"
         "1\""},
        {"a;=1", "\"a;'=1\""},
        {"a;\"=1", "\"a;'\"\"=1\""},
        {"\t=1\r\n=2",
         "\"?=1?"
         "?=2\""},
        {"\x1b[2J\xc2\x9b\xff", "\"?[2J??\""},
        {"operator==", "\"operator==\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *written = text_of(cases[i].text);
        ck_assert_str_eq(written, cases[i].written);
        free(written);
    }
}
END_TEST

START_TEST(texts_of_one_cell_are_parted_by_a_sign_that_stands_in_none) {
    char *written = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&written, &count);
    ml_csv_open(out);
    ml_csv_put(out, "=main", ';', true);
    ml_csv_put(out, "a;=b", ';', false);
    ml_csv_put(out, "@c\"", ';', false);
    ml_csv_close(out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(written, "\"'=main;a:=b;'@c\"\"\"");
    free(written);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("csv");
    tcase_add_test(tcase, a_cell_is_shown_and_never_computed);
    tcase_add_test(tcase, texts_of_one_cell_are_parted_by_a_sign_that_stands_in_none);
    return run_suite("base/csv", tcase);
}
