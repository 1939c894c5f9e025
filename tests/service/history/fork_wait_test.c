#include "service/history/fork_wait.h"

#include <check.h>

#include "tests/suite.h"

enum { LAG = 1000, FORK = 100, FAR = 1 << 20 };

static struct ml_fork_wait wait; /* of one parent */

static void set_up(void) {
    wait = (struct ml_fork_wait){.count = 0};
}

START_TEST(without_forks_nobody_is_waited_for_or_asked) {
    ck_assert_uint_eq(ml_fork_wait_until(&wait, 50, LAG, 50), 50);
    ck_assert(!ml_fork_wait_ask(&wait));
}
END_TEST

START_TEST(the_tree_stops_at_a_fork_until_its_child_has_come) {
    ml_fork_wait_add(&wait, 7, FORK);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 50, LAG, FORK + 50), FORK);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 60, LAG, FORK - 1), FORK - 1);
    ml_fork_wait_come(&wait, 8); /* another one's */
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 70, LAG, FORK + 70), FORK);
    ml_fork_wait_come(&wait, 7);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 80, LAG, FORK + 80), FORK + 80);
}
END_TEST

START_TEST(what_the_host_has_heard_up_to_holds_nobody_back) {
    ml_fork_wait_add(&wait, 7, FORK);
    ck_assert(ml_fork_wait_ask(&wait));
    ck_assert(!ml_fork_wait_ask(&wait)); /* once */
    ml_fork_wait_heard(&wait, FORK + 30);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 50, LAG, FORK + 50), FORK + 30);
    ck_assert(ml_fork_wait_ask(&wait)); /* it may still come */
    ml_fork_wait_heard(&wait, FORK + 20);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 50, LAG, FORK + 50), FORK + 30);
    ml_fork_wait_add(&wait, 8, FORK + 60);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 70, LAG, FORK + 70), FORK + 30);
    ml_fork_wait_come(&wait, 0); /* an exec: the first one's */
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 70, LAG, FORK + 70), FORK + 60);
}
END_TEST

START_TEST(a_child_that_never_streams_is_waited_for_no_longer_than_that) {
    ml_fork_wait_add(&wait, 7, FORK);
    for (uint64_t now = FORK; now < FORK + LAG; now += 100) {
        ml_fork_wait_heard(&wait, now);
        ck_assert_uint_eq(ml_fork_wait_until(&wait, now + 100, LAG, now + 100), now);
    }
    ml_fork_wait_heard(&wait, FORK + LAG);
    ck_assert_uint_eq(
        ml_fork_wait_until(&wait, FORK + LAG + 9, LAG, FORK + LAG + 9), FORK + LAG + 9
    );
    ck_assert(!ml_fork_wait_ask(&wait));
}
END_TEST

START_TEST(nor_is_a_host_that_does_not_answer) {
    ml_fork_wait_add(&wait, 7, FORK);
    ml_fork_wait_heard(&wait, FORK + 10);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + LAG + 9, LAG, FAR), FORK + 10);
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + LAG + 10, LAG, FAR), FAR);
}
END_TEST

START_TEST(of_too_many_the_oldest_are_not_waited_for) {
    for (uint64_t i = 0; i < ML_FORK_WAIT_MAX + 5; i++) {
        ml_fork_wait_add(&wait, i + 1, FORK + i);
    }
    ck_assert_uint_eq(ml_fork_wait_until(&wait, FORK + 500, LAG, FORK + 500), FORK + 5);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("fork_wait");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, without_forks_nobody_is_waited_for_or_asked);
    tcase_add_test(tcase, the_tree_stops_at_a_fork_until_its_child_has_come);
    tcase_add_test(tcase, what_the_host_has_heard_up_to_holds_nobody_back);
    tcase_add_test(tcase, a_child_that_never_streams_is_waited_for_no_longer_than_that);
    tcase_add_test(tcase, nor_is_a_host_that_does_not_answer);
    tcase_add_test(tcase, of_too_many_the_oldest_are_not_waited_for);
    return run_suite("service/fork_wait", tcase);
}
