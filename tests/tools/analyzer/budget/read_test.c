#include "tools/analyzer/budget/budget.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

#define HEAD "{\"version\": \"BUDGET_MEMLOG_1\", \"budgets\": [\n"

static struct ml_budget_rules budget;
static struct ml_error_message error;

static void setup(void) {
    budget = (struct ml_budget_rules){0};
    error = (struct ml_error_message){.text = ""};
}

static void teardown(void) {
    ml_budget_fini(&budget);
}

static void read_budget(const char *json) {
    ck_assert_msg(ml_budget_read(&budget, json, strlen(json), "my.json", &error), "%s", error.text);
}

static void refused(const char *json, const char *start, const char *why) {
    error.text[0] = '\0';
    ck_assert_msg(!ml_budget_read(&budget, json, strlen(json), "my.json", &error), "%s", json);
    ck_assert_msg(strncmp(error.text, start, strlen(start)) == 0, "%s: %s", json, error.text);
    ck_assert_msg(strstr(error.text, why) != NULL, "%s: %s", json, error.text);
    ml_budget_fini(&budget);
}

START_TEST(rules_keep_their_limits_in_order_and_their_lines) {
    read_budget(HEAD
                "// of the server\n"
                "{\"name\": \"small\", \"process\": \"server\", \"peak\": \"48M\", \"left\": 10},\n"
                "\n  {\"role\": \"renderer\", \"total_blocks\": 1000, \"peak_growth\": \"5%\"},\n"
                "{\"component\": \"stacks\", \"private\": \"8M\"},\n"
                "{\"total_growth\": \"1K\"}]}");
    ck_assert_uint_eq(budget.rules_count, 4);
    const struct ml_budget_rule *rules = budget.rules;
    ck_assert_str_eq(rules[0].name, "small");
    ck_assert_uint_eq(rules[0].line, 3);
    ck_assert_uint_eq(rules[0].limits_count, 2);
    ck_assert_uint_eq(rules[0].limits[0].figure, ML_BUDGET_PEAK_BYTES);
    ck_assert_uint_eq(rules[0].limits[0].most, 48 << 20);
    ck_assert_uint_eq(rules[0].limits[1].most, 10);
    ck_assert(ml_budget_is_of_processes(&rules[0]) && !ml_budget_is_of_stacks(&rules[0]));
    ck_assert_str_eq(rules[1].name, "renderer");
    ck_assert_uint_eq(rules[1].line, 5);
    ck_assert_uint_eq(rules[1].role, MEMLOG_SERVICE_ROLE_RENDERER);
    ck_assert(rules[1].limits[1].is_growth && rules[1].limits[1].is_percent);
    ck_assert_uint_eq(rules[1].limits[1].most, 5);
    ck_assert_uint_eq(rules[2].component, ML_COMPONENT_STACK);
    ck_assert_str_eq(rules[3].name, "all processes");
    ck_assert(rules[3].limits[0].is_growth && !rules[3].limits[0].is_percent);
}
END_TEST

START_TEST(a_rule_that_is_not_understood_is_refused_by_its_line) {
    refused(
        HEAD "{\"peek\": 1}]}", "my.json:2: rule 1 ('all processes'): ", "did you mean 'peak'?"
    );
    refused(
        HEAD "{\"peak\": 1},\n{\"name\": \"a{b\", \"peak\": \"much\"}]}",
        "my.json:3: rule 2 ('a{b'): ",
        "a size"
    );
    refused(HEAD "{\"left_blocks\": \"5%\"}]}", "my.json:2: ", "a number of blocks");
    refused(HEAD "{\"peak_growth\": \"%\"}]}", "my.json:2: ", "or a share such as");
    refused(HEAD "{\"peak\": -1}]}", "my.json:2: ", "a size");
    refused(HEAD "{\"process\": \"x\"}]}", "my.json:2: ", "it has no limit");
    refused(HEAD "{\"process\": \"(\", \"peak\": 1}]}", "my.json:2: ", "'process': \"(\"");
    refused(HEAD "{\"process\": 1, \"peak\": 1}]}", "my.json:2: ", "no text");
    refused(HEAD "{\"role\": \"page\", \"peak\": 1}]}", "my.json:2: ", "not browser, renderer");
    refused(
        HEAD "{\"component\": \"stack\", \"private\": 1}]}", "my.json:2: ", "did you mean 'stacks'?"
    );
    refused(HEAD "{\"component\": \"stacks\", \"peak\": 1}]}", "my.json:2: ", "component's limits");
    refused(
        HEAD "{\"component\": \"stacks\", \"heap\": \"x\", \"private\": 1}]}",
        "my.json:2: ",
        "goes with"
    );
    refused(HEAD "{\"function\": \"f\", \"private\": 1}]}", "my.json:2: ", "not of functions");
    refused(HEAD "{\"peak\": 1},\n\n\n7]}", "my.json:5: rule 2 (''): ", "a rule is an object");
    refused(HEAD "{\"peak\": 1,\n\"peak\": 2}]}", "my.json:3: ", "duplicate");
}
END_TEST

START_TEST(what_is_no_budget_is_refused) {
    refused("", "my.json:", "");
    refused("[]", "my.json: ", "this is no budget");
    refused("{\"version\": \"2\"}", "my.json: ", "this is no budget");
    refused("{\"version\": \"BUDGET_MEMLOG_1\"}", "my.json: ", "one rule at least");
    refused(
        "{\"version\": \"BUDGET_MEMLOG_1\", \"budgets\": []}", "my.json: ", "one rule at least"
    );
    refused("{\"version\": \"BUDGET_MEMLOG_1\", \"rules\": []}", "my.json: ", "'rules' is no key");
    refused(
        "{\"version\": \"BUDGET_MEMLOG_1\", \"comment\": [1]}", "my.json: ", "'comment' is no text"
    );
    refused(HEAD "{\"peak\": 1}", "my.json:2: ", "");
}
END_TEST

START_TEST(limits_and_values_are_written_with_their_units) {
    char text[ML_BUDGET_TEXT_BYTES];
    const struct ml_budget_limit percent = {.is_percent = true, .most = 5};
    const struct ml_budget_limit blocks = {.figure = ML_BUDGET_LEFT_BLOCKS, .most = 1};
    ck_assert_str_eq(ml_budget_limit_text(&percent, text), "5 %");
    ck_assert_str_eq(ml_budget_limit_text(&blocks, text), "1 block");
    ck_assert_str_eq(ml_budget_value_text(ML_BUDGET_PEAK_BYTES, -2048, text), "-2.0 KiB");
    ck_assert_str_eq(ml_budget_value_text(ML_BUDGET_PEAK_BLOCKS, 1234, text), "1,234 blocks");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("budget");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, rules_keep_their_limits_in_order_and_their_lines);
    tcase_add_test(tests, a_rule_that_is_not_understood_is_refused_by_its_line);
    tcase_add_test(tests, what_is_no_budget_is_refused);
    tcase_add_test(tests, limits_and_values_are_written_with_their_units);
    return run_suite("budget", tests);
}
