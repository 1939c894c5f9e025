#include "tools/analyzer/names/script_name.h"

#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

static struct ml_profile_text text_of(const char *text) {
    return (struct ml_profile_text){.bytes = text, .count_bytes = strlen(text)};
}

/* "FUNCTION|FILE|LINE" of a name as a run-time writes it. */
static const char *taken_apart(const char *text) {
    static char said[512];
    const struct ml_script_parts parts = ml_script_parts(ml_script_name(text_of(text)));
    (void)snprintf(
        said,
        sizeof(said),
        "%.*s|%.*s|%u",
        (int)parts.function.count_bytes,
        parts.function.bytes,
        (int)parts.file.count_bytes,
        parts.file.count_bytes > 0 ? parts.file.bytes : "",
        parts.line
    );
    return said;
}

START_TEST(v8s_names_have_function_file_and_line) {
    ck_assert_str_eq(taken_apart("JS:*work /srv/a b.js:30:7"), "work|/srv/a b.js|30");
    ck_assert_str_eq(
        taken_apart("JS:~Module.load node:internal/m:1257:33"), "Module.load|node:internal/m|1257"
    );
    ck_assert_str_eq(taken_apart("JS:^get size file:///a.mjs:3:1"), "get size|file:///a.mjs|3");
    ck_assert_str_eq(taken_apart("LazyCompile:~foo /a.js:12"), "foo|/a.js|12");
    ck_assert_str_eq(taken_apart("JS:~ /a.js:1:1"), "(anonymous)|/a.js|1");
}
END_TEST

START_TEST(how_a_function_was_compiled_is_no_part_of_its_name) {
    const char *const ways[] = {
        "JS:~f /a.js:1:2",
        "JS:^f /a.js:1:2",
        "JS:+f /a.js:1:2",
        "JS:*f /a.js:1:2",
        "JS:*'f /a.js:1:2",
        "JS:f /a.js:1:2"};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        ck_assert_str_eq(ml_script_name(text_of(ways[i])).bytes, "f /a.js:1:2");
    }
}
END_TEST

START_TEST(pythons_names_have_function_and_file) {
    ck_assert_str_eq(
        taken_apart("py::Tree.<locals>.grow:/srv/a.py"), "Tree.<locals>.grow|/srv/a.py|0"
    );
    ck_assert_str_eq(taken_apart("py::<module>:<string>"), "<module>|<string>|0");
    ck_assert_str_eq(taken_apart("py::work:/srv/a.py:12"), "work|/srv/a.py|12");
    ck_assert_str_eq(taken_apart("py::work:<a 1:2>:3"), "work|<a 1:2>|3");
    ck_assert_str_eq(taken_apart("py:::/a.py:3"), "py:::/a.py:3||0");
}
END_TEST

START_TEST(what_is_not_understood_stays_as_it_is) {
    const char *const names[] = {
        "",
        "JS:",
        "JS:*",
        "py::",
        "py:::",
        "py::f",
        "Builtin:Abort",
        "RegExp:a b:1",
        ":1",
        "1:2:3",
        " ",
        "x :1",
        "f :1:2",
        "Ljava/lang/String;::hashCode",
        "void a.b.c(a.d,int)",
        "f /a.js:99999999999"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct ml_script_parts parts = ml_script_parts(ml_script_name(text_of(names[i])));
        ck_assert_uint_eq(parts.file.count_bytes, 0);
        ck_assert_str_eq(parts.function.bytes, names[i]);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("script_name");
    tcase_add_test(tests, v8s_names_have_function_file_and_line);
    tcase_add_test(tests, how_a_function_was_compiled_is_no_part_of_its_name);
    tcase_add_test(tests, pythons_names_have_function_and_file);
    tcase_add_test(tests, what_is_not_understood_stays_as_it_is);
    return run_suite("tools/script_name", tests);
}
