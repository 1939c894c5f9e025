#include "tools/analyzer/formats/units.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

static const char *kept(struct ml_units units) {
    static struct ml_units last;

    last = units;
    return last.text;
}

START_TEST(sizes_have_one_decimal_and_units_of_1024) {
    ck_assert_str_eq(kept(ml_units_size(0)), "0 B");
    ck_assert_str_eq(kept(ml_units_size(1023)), "1023 B");
    ck_assert_str_eq(kept(ml_units_size(1024)), "1.0 KiB");
    ck_assert_str_eq(kept(ml_units_size(1536)), "1.5 KiB");
    ck_assert_str_eq(kept(ml_units_size((uint64_t)5 << 20)), "5.0 MiB");
    ck_assert_str_eq(kept(ml_units_size((uint64_t)3 << 30)), "3.0 GiB");
    ck_assert_str_eq(kept(ml_units_size(UINT64_MAX)), "16.0 EiB");
}
END_TEST

START_TEST(counts_have_separators) {
    ck_assert_str_eq(kept(ml_units_count(0)), "0");
    ck_assert_str_eq(kept(ml_units_count(999)), "999");
    ck_assert_str_eq(kept(ml_units_count(1000)), "1,000");
    ck_assert_str_eq(kept(ml_units_count(UINT64_MAX)), "18,446,744,073,709,551,615");
}
END_TEST

START_TEST(times_are_utc) {
    ck_assert_str_eq(kept(ml_units_time(0)), "");
    ck_assert_str_eq(kept(ml_units_time(1795255200123456789U)), "2026-11-21T10:00:00Z");
    ck_assert_str_eq(kept(ml_units_time_ms(1795255200123456789U)), "2026-11-21T10:00:00.123Z");
    ck_assert_str_eq(kept(ml_units_time_ms(0)), "");
}
END_TEST

START_TEST(spans_have_two_units_at_most) {
    ck_assert_str_eq(kept(ml_units_span(850000000)), "850 ms");
    ck_assert_str_eq(kept(ml_units_span(12345678901)), "12.3 s");
    ck_assert_str_eq(kept(ml_units_span(250000000000)), "4 min 10 s");
    ck_assert_str_eq(kept(ml_units_span(11520000000000)), "3 h 12 min");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, sizes_have_one_decimal_and_units_of_1024);
    tcase_add_test(tests, counts_have_separators);
    tcase_add_test(tests, times_are_utc);
    tcase_add_test(tests, spans_have_two_units_at_most);
    return run_suite("tools/words", tests);
}
