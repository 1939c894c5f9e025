#include "tools/analyzer/budget/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

enum { DUMPS = 4 };

static struct ml_budget_rule rule;
static const struct ml_budget_rules budget = {.rules = &rule, .rules_count = 1};
static struct ml_budget_value values[2][DUMPS];
static struct ml_budget_dump dumps[2][DUMPS];
static struct ml_budget_side now, base;
static struct ml_budget_verdicts verdicts;
static char sentence[ML_BUDGET_SENTENCE_BYTES];

static void setup(void) {
    rule = (struct ml_budget_rule){.name = "r", .line = 1, .limits_count = 1};
    now = (struct ml_budget_side){.dumps = dumps[0]};
    base = (struct ml_budget_side){.dumps = dumps[1]};
    verdicts = (struct ml_budget_verdicts){.results = NULL};
}

static void teardown(void) {
    ml_budget_verdicts_fini(&verdicts);
}

static struct ml_budget_value *add(struct ml_budget_side *side, double value) {
    struct ml_budget_value *added = &values[side == &base][side->count];
    *added = (struct ml_budget_value
    ){.is_known = true, .has_matched = true, .value = value, .low = value, .high = value};
    side->dumps[side->count++] =
        (struct ml_budget_dump){.file = "0001.exit.pftrace", .values = added};
    return added;
}

static void add_between(double value, double low, double high) {
    struct ml_budget_value *added = add(&now, value);
    added->low = low;
    added->high = high;
    snprintf(added->why, sizeof added->why, "events are missing");
}

static const struct ml_budget_result *judge(struct ml_budget_limit limit) {
    rule.limits[0] = limit;
    ml_budget_verdicts_fini(&verdicts);
    ck_assert(ml_budget_judge(&budget, "b.json", &now, &base, &verdicts));
    ck_assert_uint_eq(verdicts.count, 1);
    ck_assert_uint_eq(verdicts.of[verdicts.results[0].verdict], 1);
    (void)ml_budget_sentence(&verdicts.results[0], sentence);
    return &verdicts.results[0];
}

static enum ml_verdict verdict_at(uint64_t most) {
    return judge((struct ml_budget_limit){.most = most})->verdict;
}

static enum ml_verdict growth(uint64_t most, bool is_percent) {
    return judge((struct ml_budget_limit){.is_growth = true, .is_percent = is_percent, .most = most}
    )
        ->verdict;
}

START_TEST(a_limit_is_held_up_to_the_byte) {
    add(&now, 4096);
    ck_assert_int_eq(verdict_at(4096), ML_VERDICT_HELD);
    ck_assert_str_eq(sentence, "peak is 4.0 KiB, the limit is 4.0 KiB: 0 B below");
    ck_assert_int_eq(verdict_at(4095), ML_VERDICT_BROKEN);
    ck_assert_str_eq(sentence, "peak is 4.0 KiB, the limit is 4.0 KiB: 1 B above");
}
END_TEST

START_TEST(a_lower_bound_is_never_held_and_may_be_broken) {
    add_between(100, 100, HUGE_VAL);
    ck_assert_int_eq(verdict_at(1000000), ML_VERDICT_UNSURE);
    ck_assert_ptr_nonnull(strstr(sentence, "events are missing"));
    ck_assert_int_eq(verdict_at(99), ML_VERDICT_BROKEN);
}
END_TEST

START_TEST(what_lost_frees_is_neither) {
    add_between(100, 0, HUGE_VAL);
    ck_assert_int_eq(verdict_at(99), ML_VERDICT_UNSURE);
    ck_assert_int_eq(verdict_at(1000), ML_VERDICT_UNSURE);
}
END_TEST

START_TEST(an_estimate_is_sure_beyond_its_error_alone) {
    add_between(100, 80, 120);
    ck_assert_int_eq(verdict_at(120), ML_VERDICT_HELD);
    ck_assert_int_eq(verdict_at(119), ML_VERDICT_UNSURE);
    ck_assert_int_eq(verdict_at(80), ML_VERDICT_UNSURE);
    ck_assert_int_eq(verdict_at(79), ML_VERDICT_BROKEN);
}
END_TEST

START_TEST(of_several_dumps_the_median_counts_and_the_spread_is_said) {
    add(&now, 3072);
    add(&now, 1 << 20);
    add(&now, 1024);
    const struct ml_budget_result *result = judge((struct ml_budget_limit){.most = 4096});
    ck_assert_int_eq(result->verdict, ML_VERDICT_HELD);
    ck_assert_ptr_nonnull(strstr(sentence, "median of 3 dumps, 1.0 KiB to 1.0 MiB"));
    ck_assert_ptr_eq(result->now.shown, &values[0][0]);
    add(&now, 5120);
    ck_assert_int_eq(verdict_at(4096), ML_VERDICT_HELD); /* the mean of 3072 and 5120 */
    ck_assert_int_eq(verdict_at(4095), ML_VERDICT_BROKEN);
}
END_TEST

START_TEST(dumps_that_do_not_know_it_do_not_count) {
    add(&now, 10);
    struct ml_budget_value *unknown = add(&now, 0);
    *unknown = (struct ml_budget_value){.why = "no process"};
    ck_assert_int_eq(verdict_at(10), ML_VERDICT_HELD);
    values[0][0] = *unknown;
    ck_assert_int_eq(verdict_at(10), ML_VERDICT_UNSURE);
    ck_assert_str_eq(sentence, "peak is not known, 10 B is the limit: no process");
}
END_TEST

START_TEST(a_rule_that_names_nothing_is_not_held_unless_nothing_is_what_it_wants) {
    add(&now, 0)->has_matched = false;
    ck_assert_int_eq(verdict_at(10), ML_VERDICT_UNSURE);
    ck_assert_ptr_nonnull(strstr(sentence, "misspelt, or gone"));
    ck_assert_int_eq(verdict_at(0), ML_VERDICT_HELD);
}
END_TEST

START_TEST(growth_is_from_the_median_of_the_base) {
    add(&now, 1050);
    ck_assert_int_eq(growth(50, false), ML_VERDICT_UNSURE);
    ck_assert_ptr_nonnull(strstr(sentence, "--base=DUMP"));
    add(&base, 1000);
    ck_assert_int_eq(growth(50, false), ML_VERDICT_HELD);
    ck_assert_int_eq(growth(49, false), ML_VERDICT_BROKEN);
    ck_assert_int_eq(growth(5, true), ML_VERDICT_HELD);
    ck_assert_int_eq(growth(4, true), ML_VERDICT_BROKEN);
    ck_assert_ptr_nonnull(strstr(sentence, "grew by 50 B (+5.0 %) from 1000 B"));
    add(&base, 2000);
    add(&base, 3000);
    ck_assert_int_eq(growth(0, false), ML_VERDICT_HELD);
    ck_assert_ptr_nonnull(strstr(sentence, "grew by -950 B"));
}
END_TEST

START_TEST(an_uncertain_base_makes_growth_unsure) {
    add(&now, 1050);
    struct ml_budget_value *value = add(&base, 1000);
    value->high = HUGE_VAL;
    snprintf(value->why, sizeof value->why, "the base is lossy");
    ck_assert_int_eq(growth(5, true), ML_VERDICT_HELD);
    ck_assert_int_eq(growth(4, true), ML_VERDICT_UNSURE);
    ck_assert_ptr_nonnull(strstr(sentence, "the base is lossy"));
}
END_TEST

START_TEST(the_next_command_reads_the_dump_of_the_process) {
    struct ml_budget_value *value = add(&now, 10);
    char next[ML_BUDGET_SENTENCE_BYTES];
    value->pid = 7;
    ck_assert_str_eq(
        ml_budget_next(judge((struct ml_budget_limit){.figure = ML_BUDGET_LEFT_BYTES}), next),
        "memlog report --metric=live --pid=7 0001.exit.pftrace"
    );
    ck_assert_str_eq(
        ml_budget_next(judge((struct ml_budget_limit){.figure = ML_BUDGET_PRIVATE_BYTES}), next),
        "memlog components --pid=7 0001.exit.pftrace"
    );
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("verdict");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_limit_is_held_up_to_the_byte);
    tcase_add_test(tests, a_lower_bound_is_never_held_and_may_be_broken);
    tcase_add_test(tests, what_lost_frees_is_neither);
    tcase_add_test(tests, an_estimate_is_sure_beyond_its_error_alone);
    tcase_add_test(tests, of_several_dumps_the_median_counts_and_the_spread_is_said);
    tcase_add_test(tests, dumps_that_do_not_know_it_do_not_count);
    tcase_add_test(tests, a_rule_that_names_nothing_is_not_held_unless_nothing_is_what_it_wants);
    tcase_add_test(tests, growth_is_from_the_median_of_the_base);
    tcase_add_test(tests, an_uncertain_base_makes_growth_unsure);
    tcase_add_test(tests, the_next_command_reads_the_dump_of_the_process);
    return run_suite("verdict", tests);
}
