#include "host/process/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static enum ml_clock decide_for(const char *text) {
    char path[] = "/tmp/clock-test.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(dprintf(fd, "%s", text), 0);
    (void)close(fd);
    enum ml_clock clock = ml_clock_decide(path);
    (void)unlink(path);
    return clock;
}

START_TEST(ticks_are_the_tsc_only_where_the_kernel_keeps_time_by_it) {
#if defined(__x86_64__)
    ck_assert_int_eq(decide_for("tsc\n"), ML_CLOCK_TSC);
#endif
    ck_assert_int_eq(decide_for("kvm-clock\n"), ML_CLOCK_MONOTONIC);
    ck_assert_int_eq(decide_for("tsc-early\n"), ML_CLOCK_MONOTONIC);
    ck_assert_int_eq(ml_clock_decide("/nonexistent"), ML_CLOCK_MONOTONIC);
}
END_TEST

START_TEST(moments_go_forward_on_every_clock) {
    static const enum ml_clock clocks[] = {ML_CLOCK_TSC, ML_CLOCK_MONOTONIC};
    for (int i = 0; i < 2; i++) {
        struct memlog_service_moment before = ml_clock_timestamp(clocks[i]);
        (void)usleep(1000);
        struct memlog_service_moment after = ml_clock_timestamp(clocks[i]);
        ck_assert_uint_gt(after.ticks, before.ticks);
        ck_assert_uint_ge(after.monotonic_ns, before.monotonic_ns + 1000000);
        ck_assert_uint_ge(after.boottime_ns, before.boottime_ns + 1000000);
        ck_assert_uint_gt(after.realtime_ns, before.realtime_ns);
    }
    struct memlog_service_moment timestamp = ml_clock_timestamp(ML_CLOCK_MONOTONIC);
    ck_assert_uint_eq(timestamp.ticks, timestamp.monotonic_ns);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("clock");
    tcase_add_test(tcase, ticks_are_the_tsc_only_where_the_kernel_keeps_time_by_it);
    tcase_add_test(tcase, moments_go_forward_on_every_clock);
    return run_suite("host/clock", tcase);
}
