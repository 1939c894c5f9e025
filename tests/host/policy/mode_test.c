#include "host/policy/mode.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

/* One letter a role, in the order of enum memlog_service_role: A always, 3 a third, 1 a third and
 * alone. */
static const struct {
    const char *name;
    const char *browser_renderer_gpu_utility_other;
} table[ML_MODE_COUNT] = {
    {"none", "....."},
    {"manual", "....."},
    {"minimal", "A.A.."},
    {"browser", "A...."},
    {"gpu", "..A.."},
    {"all", "AAAAA"},
    {"all-renderers", ".A..."},
    {"renderer-sampling", ".1..."},
    {"utility-sampling", "...3."},
    {"all-utilities", "...A."},
    {"utility-and-browser", "A..A."},
};

START_TEST(every_mode_takes_exactly_its_roles) {
    static const char letters[ML_TAKE_COUNT] = {'.', 'A', '3', '1'};
    for (size_t i = 0; i < ML_MODE_COUNT; i++) {
        const enum ml_mode mode = (enum ml_mode)i;
        ck_assert_str_eq(ml_mode_name(mode), table[i].name);
        for (size_t role = 0; role < ML_ROLE_COUNT; role++) {
            enum ml_take take = ml_mode_take(mode, (enum memlog_service_role)role);
            ck_assert_msg(
                letters[take] == table[i].browser_renderer_gpu_utility_other[role],
                "%s, %s",
                table[i].name,
                ml_role_name((enum memlog_service_role)role)
            );
        }
    }
}
END_TEST

START_TEST(sampling_takes_one_third_and_renderers_only_while_none_is_profiled) {
    const enum ml_mode renderers = ML_MODE_RENDERER_SAMPLING;
    const enum ml_mode utilities = ML_MODE_UTILITY_SAMPLING;
    ck_assert(ml_mode_takes(renderers, MEMLOG_SERVICE_ROLE_RENDERER, 0, 0));
    ck_assert(ml_mode_takes(renderers, MEMLOG_SERVICE_ROLE_RENDERER, ML_MODE_DRAWS_TAKEN - 1, 0));
    ck_assert(!ml_mode_takes(renderers, MEMLOG_SERVICE_ROLE_RENDERER, ML_MODE_DRAWS_TAKEN, 0));
    ck_assert(!ml_mode_takes(renderers, MEMLOG_SERVICE_ROLE_RENDERER, 0, 1));
    ck_assert(ml_mode_takes(utilities, MEMLOG_SERVICE_ROLE_UTILITY, 0, 5));
    ck_assert(!ml_mode_takes(utilities, MEMLOG_SERVICE_ROLE_UTILITY, ML_MODE_DRAWS - 1, 0));
    ck_assert(ml_mode_takes(ML_MODE_ALL, MEMLOG_SERVICE_ROLE_OTHER, ML_MODE_DRAWS - 1, 7));
    ck_assert(!ml_mode_takes(ML_MODE_MANUAL, MEMLOG_SERVICE_ROLE_BROWSER, 0, 0));
}
END_TEST

START_TEST(values_outside_the_table_are_never_taken) {
    ck_assert(!ml_mode_takes(ML_MODE_COUNT, MEMLOG_SERVICE_ROLE_BROWSER, 0, 0));
    ck_assert(!ml_mode_takes(ML_MODE_ALL, (enum memlog_service_role)ML_ROLE_COUNT, 0, 0));
    ck_assert_str_eq(ml_mode_name(ML_MODE_COUNT), "?");
    ck_assert_str_eq(ml_role_name((enum memlog_service_role)ML_ROLE_COUNT), "?");
}
END_TEST

START_TEST(never_wins_over_only_and_no_only_means_everyone) {
    char *argv[] = {(char[]){"server"}, (char[]){"--port"}, NULL};
    struct ml_command_line line;
    ck_assert_int_eq(ml_command_line_from_argv(&line, argv), ML_OK);
    struct ml_patterns *only = ml_patterns_new();
    struct ml_patterns *never = ml_patterns_new();
    char why[ML_MODE_WHY_BYTES] = "";
    ck_assert(!ml_mode_leaves_out(only, never, &line, why));
    ck_assert_int_eq(ml_patterns_add(only, "client", 0, NULL), ML_OK);
    ck_assert(ml_mode_leaves_out(only, never, &line, why));
    ck_assert_str_eq(why, "left out: --only=client does not match it");
    ck_assert_int_eq(ml_patterns_add(only, "^agent", 0, NULL), ML_OK);
    ck_assert(ml_mode_leaves_out(only, never, &line, why));
    ck_assert_str_eq(why, "left out: none of 2 --only matches it");
    ck_assert_int_eq(ml_patterns_add(only, "^server --port$", 0, NULL), ML_OK);
    ck_assert(!ml_mode_leaves_out(only, never, &line, why));
    ck_assert_int_eq(ml_patterns_add(never, "^port", 0, NULL), ML_OK);
    ck_assert_int_eq(ml_patterns_add(never, "port", 0, NULL), ML_OK);
    ck_assert(ml_mode_leaves_out(only, never, &line, why));
    ck_assert_str_eq(why, "left out by --never=port");
    ml_patterns_free(only);
    ml_patterns_free(never);
    ml_command_line_fini(&line);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("mode");
    tcase_add_test(tcase, every_mode_takes_exactly_its_roles);
    tcase_add_test(tcase, sampling_takes_one_third_and_renderers_only_while_none_is_profiled);
    tcase_add_test(tcase, values_outside_the_table_are_never_taken);
    tcase_add_test(tcase, never_wins_over_only_and_no_only_means_everyone);
    return run_suite("host/mode", tcase);
}
