#include "base/time_text.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(reads_lengths_in_every_unit) {
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {
        {"0", 0},
        {"90", 90000},
        {"90s", 90000},
        {"250ms", 250},
        {"5m", 300000},
        {"5min", 300000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"1.5m", 90000},
        {"2.25", 2250},
        {".5s", 500},
        {"1000000000", UINT64_C(1000000000000)},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t ms = 99;
        ck_assert_msg(ml_duration_read(cases[i].text, &ms), "%s", cases[i].text);
        ck_assert_uint_eq(ms, cases[i].ms);
    }
}
END_TEST

START_TEST(refuses_what_is_not_wholly_a_length) {
    static const char *const wrong[] = {
        "",
        "s",
        ".",
        ".s",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1x",
        "1 s",
        "1S",
        "1e3",
        "0x10",
        "1000000001",
        "99999999999999999999",
        "1.5.5",
        "inf"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint64_t ms = 99;
        ck_assert_msg(!ml_duration_read(wrong[i], &ms), "%s", wrong[i]);
        ck_assert_uint_eq(ms, 99);
    }
}
END_TEST

START_TEST(reads_times_of_a_day_of_1970_and_of_the_run) {
    static const struct {
        const char *text;
        enum ml_time_from from;
        uint64_t ms;
    } cases[] = {
        {"10:02", ML_TIME_OF_DAY, 36120000},
        {"10:02Z", ML_TIME_OF_DAY, 36120000},
        {"10:02:30.5Z", ML_TIME_OF_DAY, 36150500},
        {"00:00", ML_TIME_OF_DAY, 0},
        {"2026-11-21T10:00", ML_TIME_OF_1970, UINT64_C(1795255200000)},
        {"2026-11-21T10:00:00.123Z", ML_TIME_OF_1970, UINT64_C(1795255200123)},
        {"@1795255200123", ML_TIME_OF_1970, UINT64_C(1795255200123)},
        {"+5m", ML_TIME_AFTER_START, 300000},
        {"-90", ML_TIME_BEFORE_END, 90000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_time time = {.from = ML_TIME_NONE};
        ck_assert_msg(ml_time_read(cases[i].text, &time), "%s", cases[i].text);
        ck_assert_int_eq(time.from, cases[i].from);
        ck_assert_uint_eq(time.ms, cases[i].ms);
    }
}
END_TEST

START_TEST(refuses_what_is_not_wholly_a_time) {
    static const char *const wrong[] = {
        "",
        "now",
        "yesterday",
        "10",
        "25:00",
        "10:61",
        "10:02x",
        "10:02ZZ",
        "2026-11-21",
        "+",
        "-",
        "+5x",
        "--5",
        "@",
        "@-1",
        "@1x",
        "@99999999999999999999",
        "1969-12-31T23:59"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ml_time time = {.from = ML_TIME_NONE, .ms = 7};
        ck_assert_msg(!ml_time_read(wrong[i], &time), "%s", wrong[i]);
        ck_assert_int_eq(time.from, ML_TIME_NONE);
        ck_assert_uint_eq(time.ms, 7);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("time_text");
    tcase_add_test(tcase, reads_lengths_in_every_unit);
    tcase_add_test(tcase, refuses_what_is_not_wholly_a_length);
    tcase_add_test(tcase, reads_times_of_a_day_of_1970_and_of_the_run);
    tcase_add_test(tcase, refuses_what_is_not_wholly_a_time);
    return run_suite("base/time_text", tcase);
}
