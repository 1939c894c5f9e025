#include "host/commands.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

START_TEST(strings_become_json_whatever_bytes_they_hold) {
    static const struct {
        const char *bytes;
        const char *json;
    } cases[] = {
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"tab\tnew\n", "\"tab\\u0009new\\u000a\""},
        {"\xc3\xa4", "\"\xc3\xa4\""},
        {"\xc3", "\"\\ufffd\""},
        {"\xff\xfe", "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
        {"", "\"\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t count = 0;
        FILE *out = open_memstream(&text, &count);
        ml_json_string(out, cases[i].bytes, strlen(cases[i].bytes));
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_str_eq(text, cases[i].json);
        free(text);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("commands");
    tcase_add_test(tcase, strings_become_json_whatever_bytes_they_hold);
    Suite *suite = suite_create("host/commands");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
