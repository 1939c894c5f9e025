#include "host/fleet/options.h"

#include <check.h>

#include "tests/suite.h"

enum { DAY_MS = 86400000, HOUR_MS = 3600000 };

static uint64_t ms_of(const char *text, uint64_t now_ms) {
    struct ml_time time;
    ck_assert(ml_time_read(text, &time));
    return ml_fleet_time_ms(time, now_ms);
}

START_TEST(a_time_of_day_is_the_last_one) {
    const uint64_t now_ms = (uint64_t)20000 * DAY_MS + 9 * HOUR_MS;
    ck_assert_uint_eq(ms_of("08:00", now_ms), now_ms - HOUR_MS);
    ck_assert_uint_eq(ms_of("09:00", now_ms), now_ms);
    ck_assert_uint_eq(ms_of("10:00", now_ms), now_ms + HOUR_MS - DAY_MS);
    ck_assert_uint_eq(ms_of("-2h", now_ms), now_ms - 2 * HOUR_MS);
    ck_assert_uint_eq(ms_of("@1234", now_ms), 1234);
    ck_assert_uint_eq(ml_fleet_time_ms((struct ml_time){.from = ML_TIME_NONE}, now_ms), 0);
}
END_TEST

/* Nothing is ignored: an option that its question does not understand is refused. */
START_TEST(what_a_question_does_not_understand_is_refused) {
    struct ml_fleet_options options = ml_fleet_options_default();
    struct ml_error_message error = {.text = ""};
    char *const words[] = {"top", "prog", "--host=x", NULL};
    uint64_t given = 0;
    ck_assert_int_eq(
        ml_option_table_read(&ml_fleet_table, words, &options, &given, &error), ML_OPTIONS_READ
    );
    ck_assert(!ml_fleet_options_settle(&options, given, &error));
    ck_assert_str_eq(error.text, "--host says nothing to top");
    /* A default of the user's file is for all questions. */
    error.text[0] = '\0';
    ck_assert(ml_fleet_options_settle(&options, 0, &error));
    ck_assert_str_eq(options.program, "prog");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("fleet_options");
    tcase_add_test(tests, a_time_of_day_is_the_last_one);
    tcase_add_test(tests, what_a_question_does_not_understand_is_refused);
    return run_suite("fleet_options", tests);
}
