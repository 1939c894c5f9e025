/* Files of known leaks: which lines are read, and what their patterns match. */
#include "tools/analyzer/suppressions/suppressions.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_suppressions suppressions;
static struct ml_error_message error;

static bool read_text(const char *text) {
    error = (struct ml_error_message){.text = ""};
    return ml_suppressions_read(&suppressions, text, strlen(text), "known", &error);
}

START_TEST(lines_are_patterns_comments_or_blank) {
    ck_assert_msg(
        read_text("# of ours\n\n  leak:one \r\n\tleak:two*::$\nleak:a b"), "%s", error.text
    );
    ck_assert_uint_eq(suppressions.count, 3);
    ck_assert_str_eq(suppressions.rules[0].pattern, "one");
    ck_assert_uint_eq(suppressions.rules[0].line, 3);
    ck_assert_str_eq(suppressions.rules[1].pattern, "two*::$");
    ck_assert_str_eq(suppressions.rules[2].pattern, "a b");
    ck_assert_uint_eq(suppressions.rules[2].line, 5);
    ml_suppressions_fini(&suppressions);
    ck_assert(read_text(""));
    ck_assert_uint_eq(suppressions.count, 0);
    ml_suppressions_fini(&suppressions);
}
END_TEST

static const struct {
    const char *text;
    const char *error;
} wrong[] = {
    {"leak:a\nrace:b\n", "known:2: leak:PATTERN is wanted"},
    {"one", "known:1: leak:PATTERN is wanted"},
    {"LEAK:a", "known:1: leak:PATTERN is wanted"},
    {"leak:", "known:1: the pattern would match everything"},
    {"leak:a\n\nleak:^**$\n", "known:3: the pattern would match everything"},
};

START_TEST(a_wrong_line_is_named_by_its_number) {
    ck_assert(!read_text(wrong[_i].text));
    ck_assert_msg(strstr(error.text, wrong[_i].error) == error.text, "%s", error.text);
    ml_suppressions_fini(&suppressions);
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused) {
    ck_assert(!ml_suppressions_read(&suppressions, "leak:a\nleak:\0b\n", 15, "known", &error));
    ck_assert_str_eq(error.text, "known:2: this is no text");
    ml_suppressions_fini(&suppressions);
}
END_TEST

static const struct {
    const char *pattern, *text;
    bool matches;
} matches[] = {
    {"one", "one", true},           {"one", "no one there", true},
    {"one", "On", false},           {"one", "", false},
    {"^one", "one more", true},     {"^one", "no one", false},
    {"one$", "no one", true},       {"one$", "one more", false},
    {"one$", "one by one", true}, /* the last one, not the first */
    {"^one$", "one", true},         {"^one$", "one one", false},
    {"a*c", "xabcx", true},         {"a*c", "acid", true},
    {"a*c", "cab", false},          {"^a*c$", "abcbc", true},
    {"^a*c$", "xabc", false},       {"^a*b*c$", "a-b-c", true},
    {"^a*b*c$", "a-c-b", false},    {"^a*a$", "a", false}, /* each letter of the text counts once */
    {"*one", "no one more", true},  {"one*", "no one", true},
    {"one*$", "no one more", true}, {"ns::*::leak(int)", "a::ns::T<x>::leak(int)", true},
    {"$a", "cost$a", true}, /* only at its end it is more than a letter */
    {"a^b", "xa^bx", true}, /* only at its start */
};

START_TEST(patterns_match_anywhere_unless_they_are_bound) {
    ck_assert_msg(
        ml_suppression_matches(matches[_i].pattern, matches[_i].text) == matches[_i].matches,
        "%s, %s",
        matches[_i].pattern,
        matches[_i].text
    );
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("suppressions");
    tcase_add_test(tests, lines_are_patterns_comments_or_blank);
    tcase_add_loop_test(
        tests, a_wrong_line_is_named_by_its_number, 0, (int)(sizeof wrong / sizeof wrong[0])
    );
    tcase_add_test(tests, bytes_that_are_no_text_are_refused);
    tcase_add_loop_test(
        tests,
        patterns_match_anywhere_unless_they_are_bound,
        0,
        (int)(sizeof matches / sizeof matches[0])
    );
    return run_suite("suppressions", tests);
}
