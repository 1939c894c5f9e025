#include "base/html.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static char *text_of(const char *text) {
    char *written = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&written, &count);
    ml_html_text(out, text);
    ck_assert_int_eq(fclose(out), 0);
    return written;
}

START_TEST(nothing_of_a_text_is_markup) {
    static const struct {
        const char *text;
        const char *written;
    } cases[] = {
        {"", ""},
        {"plain gr\xc3\xb6\xc3\x9f", "plain gr\xc3\xb6\xc3\x9f"},
        {"<script>alert(1)</script>", "&#60;script&#62;alert(1)&#60;/script&#62;"},
        {"a&b\"c'd", "a&#38;b&#34;c&#39;d"},
        {"\x1b[2J\n\xe2\x80\xae\xff", "?[2J???"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *written = text_of(cases[i].text);
        ck_assert_str_eq(written, cases[i].written);
        free(written);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("html");
    tcase_add_test(tcase, nothing_of_a_text_is_markup);
    return run_suite("base/html", tcase);
}
