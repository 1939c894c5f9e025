#include <check.h>
#include <pthread.h>

#include "ipc/wire/lease.h"
#include "tests/suite.h"

enum { NOW = 5000000, THREADS = 4, STAMPS = 100000 };

START_TEST(a_stamp_is_the_clocks_while_that_goes_on) {
    struct ml_lease_page page = {.last_ns = NOW - 1};
    ck_assert_uint_eq(ml_lease_stamp(&page, NOW), NOW);
    ck_assert_uint_eq(ml_lease_stamp(&page, NOW + 70), NOW + 70);
}
END_TEST

START_TEST(a_clock_that_stands_still_or_steps_back_gives_later_stamps_all_the_same) {
    struct ml_lease_page page = {.last_ns = 0};
    ck_assert_uint_eq(ml_lease_stamp(&page, NOW), NOW);
    ck_assert_uint_eq(ml_lease_stamp(&page, NOW), NOW + 1);
    ck_assert_uint_eq(ml_lease_stamp(&page, NOW - 300), NOW + 2);
}
END_TEST

START_TEST(a_forged_last_stamp_is_none) {
    struct ml_lease_page page = {.last_ns = UINT64_MAX};
    ck_assert_uint_eq(ml_lease_stamp(&page, NOW), NOW);
    page.last_ns = NOW + ML_LEASE_AHEAD_MAX_NS;
    ck_assert_uint_eq(ml_lease_stamp(&page, NOW), NOW);
}
END_TEST

static struct ml_lease_page shared = {.last_ns = NOW};
static uint8_t given[THREADS * STAMPS + 1];

static void *stamp(void *argument) {
    uint64_t last_ns = 0;
    for (int i = 0; i < STAMPS; i++) {
        const uint64_t stamp_ns = ml_lease_stamp(&shared, NOW);
        ck_assert_uint_gt(stamp_ns, last_ns);
        (void)__atomic_add_fetch(&given[stamp_ns - NOW], 1, __ATOMIC_RELAXED);
        last_ns = stamp_ns;
    }
    return argument;
}

START_TEST(no_two_threads_have_one_stamp) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, stamp, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 1; i <= THREADS * STAMPS; i++) {
        ck_assert_uint_eq(given[i], 1);
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("lease_stamp");
    tcase_add_test(cases, a_stamp_is_the_clocks_while_that_goes_on);
    tcase_add_test(cases, a_clock_that_stands_still_or_steps_back_gives_later_stamps_all_the_same);
    tcase_add_test(cases, a_forged_last_stamp_is_none);
    tcase_add_test(cases, no_two_threads_have_one_stamp);
    return run_suite("ipc/lease_stamp", cases);
}
