#include "service/history/fork_log.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_budget budget;
static struct ml_fork_log forks;

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    ml_fork_log_init(&forks, &budget);
}

static void tear_down(void) {
    ml_fork_log_fini(&forks);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

static void add(uint64_t serial, uint64_t live_bytes) {
    const struct ml_fork fork = {.serial = serial, .live_bytes = live_bytes, .live_blocks = 1};
    ck_assert_int_eq(ml_fork_log_add(&forks, &fork), ML_OK);
}

START_TEST(an_empty_log_knows_no_fork) {
    ck_assert_ptr_null(ml_fork_log_find(&forks, 0));
    ck_assert_ptr_null(ml_fork_log_find(&forks, 1));
}
END_TEST

START_TEST(finds_each_of_many_by_its_serial) {
    for (uint64_t serial = 1; serial <= 5000; serial++) {
        add(serial, serial * 10);
    }
    for (uint64_t serial = 1; serial <= 5000; serial++) {
        const struct ml_fork *fork = ml_fork_log_find(&forks, serial);
        ck_assert_ptr_nonnull(fork);
        ck_assert_uint_eq(fork->live_bytes, serial * 10);
    }
    ck_assert_ptr_null(ml_fork_log_find(&forks, 5001));
    ck_assert_ptr_null(ml_fork_log_find(&forks, 0)); /* an empty place has no serial */
}
END_TEST

START_TEST(a_fork_that_is_told_again_is_what_was_told_last) {
    add(3, 10);
    add(3, 20);
    ck_assert_uint_eq(ml_fork_log_find(&forks, 3)->live_bytes, 20);
}
END_TEST

START_TEST(of_very_many_the_oldest_are_forgotten) {
    for (uint64_t serial = 1; serial <= ML_FORK_LOG_MAX + 10; serial++) {
        add(serial, serial);
    }
    ck_assert_uint_eq(budget.used_bytes, ML_FORK_LOG_MAX * sizeof(struct ml_fork));
    ck_assert_ptr_null(ml_fork_log_find(&forks, 10));
    ck_assert_ptr_nonnull(ml_fork_log_find(&forks, 11));
    ck_assert_ptr_nonnull(ml_fork_log_find(&forks, ML_FORK_LOG_MAX + 10));
}
END_TEST

START_TEST(without_memory_the_others_stay) {
    add(1, 10);
    budget.max_bytes = budget.used_bytes;
    const struct ml_fork other = {.serial = 1 + forks.capacity};
    ck_assert_int_eq(ml_fork_log_add(&forks, &other), ML_ENV_MEMORY);
    ck_assert_uint_eq(ml_fork_log_find(&forks, 1)->live_bytes, 10);
    ck_assert_ptr_null(ml_fork_log_find(&forks, other.serial));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("fork_log");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_empty_log_knows_no_fork);
    tcase_add_test(tcase, finds_each_of_many_by_its_serial);
    tcase_add_test(tcase, a_fork_that_is_told_again_is_what_was_told_last);
    tcase_add_test(tcase, of_very_many_the_oldest_are_forgotten);
    tcase_add_test(tcase, without_memory_the_others_stay);
    return run_suite("service/history/fork_log", tcase);
}
