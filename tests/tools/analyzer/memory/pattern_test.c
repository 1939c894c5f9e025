#include "tools/analyzer/memory/pattern.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static bool matches(const char *text, const char *of) {
    struct ml_error_message error = {.text = ""};
    struct ml_pattern pattern;

    ck_assert_msg(ml_pattern_init(&pattern, text, &error), "%s: %s", text, error.text);
    const bool answer = ml_pattern_matches(&pattern, of);
    ml_pattern_fini(&pattern);
    return answer;
}

static void refused(const char *text, const char *why) {
    struct ml_error_message error = {.text = ""};
    struct ml_pattern pattern;

    ck_assert_msg(!ml_pattern_init(&pattern, text, &error), "%s", text);
    ck_assert_msg(strstr(error.text, why) != NULL, "%s: %s", text, error.text);
}

START_TEST(a_pattern_matches_the_whole_text) {
    ck_assert(matches("main", "main"));
    ck_assert(!matches("main", "main loop"));
    ck_assert(!matches("main", "domain"));
    ck_assert(matches(".*", ""));
    ck_assert(matches(".*v8::.*", "malloc v8::internal::Heap main"));
    ck_assert(!matches(".*v8::.*", "malloc v9::internal::Heap main"));
    ck_assert(matches("a|b", "b"));
    ck_assert(!matches("a|b", "ab"));
}
END_TEST

START_TEST(anchors_and_escapes_of_python_mean_the_same) {
    ck_assert(matches("^/.*", "/usr/lib/x.so"));
    ck_assert(matches("^$", ""));
    ck_assert(!matches("^$", "x"));
    ck_assert(matches("..x.", "r-xp"));
    ck_assert(matches("^/.*?(chrome|content).*\\Z", "/opt/chrome/lib"));
    ck_assert(matches("(?:ab)+", "abab"));
    ck_assert(matches("x\\d+", "x12"));
    ck_assert(matches("[\\d\\w]*", "x12"));
    ck_assert(matches("\\S+ \\S+", "a b"));
    ck_assert(matches("\\[heap\\]", "[heap]"));
    ck_assert(matches("[]a]+", "]a"));
    ck_assert(matches("[^]a]+", "bc"));
    ck_assert(matches("[[:alpha:]]{2,3}?", "abc"));
    ck_assert(matches("([^ ]*/libc[^ ]* )?[^ ]*/php( .*)?", "/lib/libc.so /bin/php /bin/x"));
    ck_assert(matches("(a|b+)*c", "abbac"));
    ck_assert(matches("", ""));
    ck_assert(!matches("", "a"));
}
END_TEST

START_TEST(a_literal_in_front_of_a_star_may_be_missing) {
    ck_assert(matches("abc*", "ab"));
    ck_assert(matches("abc?d", "abd"));
    ck_assert(matches("lib.*x*", "libc"));
}
END_TEST

START_TEST(what_is_not_supported_is_refused_by_its_name) {
    refused("(?!a)b", "(?!...)");
    refused("(a)\\1", "\\1");
    refused("a\\", "backslash");
    refused("((a{200}){200}){200}", "has repetitions in it");
    refused("a{2000}", "repeats more");
    refused("a{600}b{600}", "repeats more");
    refused("a++", "behind another");
    refused("a{2}{3}", "behind another");
    refused("(((a+)*)+)*", "has repetitions in it");
    refused("((a*|b*|c*)(d*|e*|f*)(g*|h*))*", "has repetitions in it");
    refused("(a|)b", "empty alternative");
    refused("(((((((((((((((((((((((((((((((((a)))))))))))))))))))))))))))))))))", "groups");
    refused("(a", "");
    char *text = calloc(1, 5001);
    memset(text, 'a', 5000);
    refused(text, "longer");
    free(text);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("pattern");
    tcase_add_test(cases, a_pattern_matches_the_whole_text);
    tcase_add_test(cases, anchors_and_escapes_of_python_mean_the_same);
    tcase_add_test(cases, a_literal_in_front_of_a_star_may_be_missing);
    tcase_add_test(cases, what_is_not_supported_is_refused_by_its_name);
    return run_suite("pattern", cases);
}
