#include "host/policy/role.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

/* The role of a command line given as one string, its arguments parted by '|'. */
static enum memlog_service_role
role_of(const struct ml_patterns *rules, const char *text, bool is_root) {
    char bytes[256];
    size_t count = strlen(text);
    memcpy(bytes, text, count);
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '|') {
            bytes[i] = '\0';
        }
    }
    struct ml_command_line line;
    ck_assert_int_eq(ml_command_line_from_bytes(&line, bytes, count), ML_OK);
    enum memlog_service_role role = ml_role_of(rules, &line, is_root);
    ml_command_line_fini(&line);
    return role;
}

START_TEST(the_root_is_the_browser_and_types_tell_the_others) {
    static const struct {
        const char *line;
        bool is_root;
        enum memlog_service_role role;
    } cases[] = {
        {"prog", true, MEMLOG_SERVICE_ROLE_BROWSER},
        {"prog", false, MEMLOG_SERVICE_ROLE_OTHER},
        {"prog|--type=renderer", true, MEMLOG_SERVICE_ROLE_BROWSER},
        {"prog|--type=renderer", false, MEMLOG_SERVICE_ROLE_RENDERER},
        {"prog|-x|--type=renderer|y", false, MEMLOG_SERVICE_ROLE_RENDERER},
        {"prog|--type=gpu", false, MEMLOG_SERVICE_ROLE_GPU},
        {"prog|--type=gpu-process", false, MEMLOG_SERVICE_ROLE_GPU},
        {"prog|--type=utility", false, MEMLOG_SERVICE_ROLE_UTILITY},
        {"prog|--type=zygote", false, MEMLOG_SERVICE_ROLE_OTHER},
        {"prog|--type=rendererx", false, MEMLOG_SERVICE_ROLE_OTHER},
        {"prog|--type=", false, MEMLOG_SERVICE_ROLE_OTHER},
        {"sh|-c|prog --type=renderer", false, MEMLOG_SERVICE_ROLE_OTHER},
        {"prog --type=renderer --lang=en", false, MEMLOG_SERVICE_ROLE_RENDERER},
        {"prog --type=renderer|||", false, MEMLOG_SERVICE_ROLE_RENDERER},
        {"--type=gpu", false, MEMLOG_SERVICE_ROLE_GPU},
        {"prog|--type=zygote|--type=renderer", false, MEMLOG_SERVICE_ROLE_OTHER},
        {"", false, MEMLOG_SERVICE_ROLE_OTHER},
        {"", true, MEMLOG_SERVICE_ROLE_BROWSER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(
            role_of(NULL, cases[i].line, cases[i].is_root) == cases[i].role, "%s", cases[i].line
        );
    }
}
END_TEST

START_TEST(the_persons_rules_come_first_in_their_order) {
    struct ml_patterns *rules = ml_patterns_new();
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(
        ml_patterns_add(rules, "worker [0-9]+$", MEMLOG_SERVICE_ROLE_RENDERER, &error), ML_OK
    );
    ck_assert_int_eq(ml_patterns_add(rules, "worker", MEMLOG_SERVICE_ROLE_GPU, &error), ML_OK);
    ck_assert_int_eq(role_of(rules, "app|worker|12", false), MEMLOG_SERVICE_ROLE_RENDERER);
    ck_assert_int_eq(role_of(rules, "app|worker|x", true), MEMLOG_SERVICE_ROLE_GPU);
    ck_assert_int_eq(role_of(rules, "app|--type=utility|worker", false), MEMLOG_SERVICE_ROLE_GPU);
    ck_assert_int_eq(role_of(rules, "app|--type=utility", false), MEMLOG_SERVICE_ROLE_UTILITY);
    ck_assert_uint_eq(ml_patterns_count(rules), 2);
    ml_patterns_free(rules);
}
END_TEST

START_TEST(names_of_roles_go_both_ways_and_a_wrong_one_names_the_nearest) {
    for (int i = 0; i < ML_ROLE_COUNT; i++) {
        enum memlog_service_role role = (enum memlog_service_role)ML_ROLE_COUNT;
        ck_assert_int_eq(
            ml_role_parse(ml_role_name((enum memlog_service_role)i), &role, NULL), ML_OK
        );
        ck_assert_int_eq(role, i);
    }
    enum memlog_service_role role = (enum memlog_service_role)ML_ROLE_COUNT;
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_role_parse("render", &role, &error), ML_ENV_MISSING);
    ck_assert_ptr_nonnull(strstr(error.text, "did you mean 'renderer'?"));
    ck_assert_int_eq((int)role, ML_ROLE_COUNT);
}
END_TEST

START_TEST(a_wrong_expression_is_refused_with_its_reason) {
    struct ml_patterns *rules = ml_patterns_new();
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_patterns_add(rules, "a(b", 0, &error), ML_PEER_FORM);
    ck_assert_ptr_nonnull(strstr(error.text, "'a(b' is no regular expression"));
    ck_assert_uint_eq(ml_patterns_count(rules), 0);
    ck_assert_int_eq(ml_patterns_match(rules, "a"), -1);
    ml_patterns_free(rules);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("role");
    tcase_add_test(tcase, the_root_is_the_browser_and_types_tell_the_others);
    tcase_add_test(tcase, the_persons_rules_come_first_in_their_order);
    tcase_add_test(tcase, names_of_roles_go_both_ways_and_a_wrong_one_names_the_nearest);
    tcase_add_test(tcase, a_wrong_expression_is_refused_with_its_reason);
    return run_suite("host/role", tcase);
}
