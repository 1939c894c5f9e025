#include "host/policy/trigger_rules.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/suite.h"

static enum ml_status
load(const char *text, struct ml_trigger_rules *rules, struct ml_error_message *error) {
    char path[] = "/tmp/memlog-rules-test.XXXXXX";
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    *error = (struct ml_error_message){.text = ""};
    const enum ml_status status = ml_trigger_rules_load(rules, path, error);
    if (status != ML_OK) {
        ck_assert_ptr_nonnull(strstr(error->text, path));
    }
    unlink(path);
    return status;
}

START_TEST(the_defaults_are_chromiums) {
    const struct ml_trigger_rules rules = ml_trigger_rules_default();
    ck_assert_uint_eq(rules.service.footprint_bytes.browser, 400ULL << 20);
    ck_assert_uint_eq(rules.service.footprint_bytes.gpu, 400ULL << 20);
    ck_assert_uint_eq(rules.service.footprint_bytes.renderer, 500ULL << 20);
    ck_assert_uint_eq(rules.service.footprint_bytes.utility, 250ULL << 20);
    ck_assert_uint_eq(rules.service.footprint_bytes.other, 0);
    ck_assert_uint_eq(rules.service.footprint_again_bytes, 500ULL << 20);
    ck_assert_uint_eq(rules.interval_seconds, 900);
    ck_assert_uint_eq(rules.service.control_one_in, 0);
    ck_assert(!ml_trigger_rules_watch_memory(&rules));
}
END_TEST

START_TEST(a_threshold_is_a_role_and_a_size) {
    struct ml_trigger_rules rules = ml_trigger_rules_default();
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_trigger_rules_threshold(&rules, "other=3M", &error), ML_OK);
    ck_assert_uint_eq(rules.service.footprint_bytes.other, 3ULL << 20);
    ck_assert_int_eq(ml_trigger_rules_threshold(&rules, "gpu=off", &error), ML_OK);
    ck_assert_uint_eq(rules.service.footprint_bytes.gpu, 0);
    static const char *const bad[] = {"", "gpu", "=1M", "gpu=", "gpu=0", "gpu=x", "gpux=1M"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error.text[0] = '\0';
        ck_assert_int_ne(ml_trigger_rules_threshold(&rules, bad[i], &error), ML_OK);
        ck_assert_int_ne(error.text[0], '\0');
    }
}
END_TEST

START_TEST(a_file_sets_what_it_names_and_leaves_the_rest) {
    struct ml_trigger_rules rules = ml_trigger_rules_default();
    struct ml_error_message error;
    static const char text[] =
        "{\"interval_seconds\": 5, \"footprint\": {\"browser\": \"1G\", \"gpu\": \"off\","
        " \"again\": 4096}, \"live\": {\"other\": \"2M\"}, \"growth\": {\"bytes\": \"3M\","
        " \"seconds\": 7}, \"limit\": {\"percent\": 90}, \"time_to_limit\": {\"seconds\": 30},"
        " \"pressure\": {\"some_percent\": 20, \"full_percent\": false, \"events\": true},"
        " \"every_seconds\": 60, \"peak\": {\"step\": \"5M\"}, \"stack\": {\"bytes\": \"6M\"},"
        " \"control\": {\"one_in\": 100}, \"killed\": false,"
        " \"at_most\": {\"dumps\": 8, \"seconds\": 9}}";
    ck_assert_msg(load(text, &rules, &error) == ML_OK, "%s", error.text);
    ck_assert_uint_eq(rules.interval_seconds, 5);
    ck_assert_uint_eq(rules.service.footprint_bytes.browser, 1ULL << 30);
    ck_assert_uint_eq(rules.service.footprint_bytes.gpu, 0);
    ck_assert_uint_eq(rules.service.footprint_bytes.renderer, 500ULL << 20);
    ck_assert_uint_eq(rules.service.footprint_again_bytes, 4096);
    ck_assert_uint_eq(rules.service.live_bytes.other, 2ULL << 20);
    ck_assert_uint_eq(rules.service.growth_bytes, 3ULL << 20);
    ck_assert_uint_eq(rules.service.growth_seconds, 7);
    ck_assert_uint_eq(rules.service.limit_percent, 90);
    ck_assert_uint_eq(rules.service.to_limit_seconds, 30);
    ck_assert_uint_eq(rules.service.pressure_some_percent, 20);
    ck_assert_uint_eq(rules.service.pressure_full_percent, 0);
    ck_assert(rules.service.pressure_events);
    ck_assert_uint_eq(rules.service.every_seconds, 60);
    ck_assert_uint_eq(rules.service.peak_step_bytes, 5ULL << 20);
    ck_assert_uint_eq(rules.service.stack_bytes, 6ULL << 20);
    ck_assert_uint_eq(rules.service.control_one_in, 100);
    ck_assert(!rules.service.killed);
    ck_assert_uint_eq(rules.service.most_dumps, 8);
    ck_assert_uint_eq(rules.service.most_seconds, 9);
    ck_assert(ml_trigger_rules_watch_memory(&rules));
}
END_TEST

START_TEST(what_is_wrong_is_named_and_changes_nothing) {
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"{\"every_second\": 1}", "did you mean \"every_seconds\""},
        {"{\"footprint\": {\"browsr\": 1}}", "did you mean \"footprint.browser\""},
        {"{\"xyzzyxyzzy\": 1}", "unknown key \"xyzzyxyzzy\""},
        {"{\"growth\": {\"growth\": {\"bytes\": 1}}}", "unknown key \"growth.growth\""},
        {"{\"footprint\": 3}", "\"footprint\": an object"},
        {"{\"footprint\": {\"gpu\": -1}}", "\"footprint.gpu\": a size"},
        {"{\"footprint\": {\"gpu\": \"1X\"}}", "\"footprint.gpu\": a size"},
        {"{\"limit\": {\"percent\": 101}}", "from 1 to 100"},
        {"{\"limit\": {\"percent\": 1.5}}", "from 1 to 100"},
        {"{\"killed\": 1}", "\"killed\": true or false"},
        {"{\"at_most\": {\"dumps\": false}}", "at_most"},
        {"[]", "an object"},
        {"{\"killed\": true, \"killed\": true}", "uplicate"},
        {"{\n\n\"killed\": tru}", ":3:"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_trigger_rules rules = ml_trigger_rules_default();
        const struct ml_trigger_rules before = rules;
        struct ml_error_message error;
        ck_assert_int_ne(load(cases[i].text, &rules, &error), ML_OK);
        ck_assert_msg(
            strstr(error.text, cases[i].wanted) != NULL,
            "%s: %s, not %s",
            cases[i].text,
            error.text,
            cases[i].wanted
        );
        ck_assert_mem_eq(&rules, &before, sizeof(rules));
    }
    struct ml_trigger_rules rules = ml_trigger_rules_default();
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_trigger_rules_load(&rules, "/nowhere/x", &error), ML_ENV_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error.text, "/nowhere/x"));
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("trigger_rules");
    tcase_add_test(cases, the_defaults_are_chromiums);
    tcase_add_test(cases, a_threshold_is_a_role_and_a_size);
    tcase_add_test(cases, a_file_sets_what_it_names_and_leaves_the_rest);
    tcase_add_test(cases, what_is_wrong_is_named_and_changes_nothing);
    return run_suite("host/trigger_rules", cases);
}
