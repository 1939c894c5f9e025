#include "base/metric_label.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static char *text_of(const char *text) {
    char *written = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&written, &count);
    ml_metric_label(out, text);
    ck_assert_int_eq(fclose(out), 0);
    return written;
}

START_TEST(a_label_ends_where_it_should) {
    static const struct {
        const char *text;
        const char *written;
    } cases[] = {
        {"", ""},
        {"gr\xc3\xb6\xc3\x9f", "gr\xc3\xb6\xc3\x9f"},
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"a\nmemlog_up 0\xc2\x9b\xff", "a?memlog_up 0??"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *written = text_of(cases[i].text);
        ck_assert_str_eq(written, cases[i].written);
        free(written);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("metric_label");
    tcase_add_test(tcase, a_label_ends_where_it_should);
    return run_suite("base/metric_label", tcase);
}
