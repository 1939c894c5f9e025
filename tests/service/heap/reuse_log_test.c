#include "service/heap/reuse_log.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

enum { ENTRIES = 4 };

static struct ml_budget budget;
static struct ml_reuse_log reuse;
static bool awaited;

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    ml_reuse_log_init(&reuse, &budget, ENTRIES);
}

static void tear_down(void) {
    ml_reuse_log_fini(&reuse);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

START_TEST(an_empty_log_outdates_nothing_and_takes_no_memory) {
    ck_assert(!ml_reuse_log_outdates(&reuse, 7, 0, &awaited));
    ck_assert(!awaited);
    ck_assert_uint_eq(budget.used_bytes, 0);
}
END_TEST

START_TEST(what_is_stamped_before_it_there_is_outdated) {
    ml_reuse_log_add(&reuse, 7, 100);
    ck_assert(ml_reuse_log_outdates(&reuse, 7, 99, &awaited));
    ck_assert(awaited);
    ck_assert(!ml_reuse_log_outdates(&reuse, 7, 100, &awaited));
    ck_assert(!ml_reuse_log_outdates(&reuse, 7, 101, &awaited));
    ck_assert(!awaited);
}
END_TEST

START_TEST(each_missing_event_is_awaited_once) {
    ml_reuse_log_add(&reuse, 7, 100);
    ml_reuse_log_add(&reuse, 7, 200);
    for (int i = 0; i < 4; i++) {
        ck_assert(ml_reuse_log_outdates(&reuse, 7, 50, &awaited));
        ck_assert_int_eq(awaited, i < 2);
    }
}
END_TEST

START_TEST(the_latest_stamp_of_an_address_stays) {
    ml_reuse_log_add(&reuse, 7, 200);
    ml_reuse_log_add(&reuse, 7, 100);
    ck_assert(ml_reuse_log_outdates(&reuse, 7, 150, &awaited));
}
END_TEST

/* More addresses than places: whoever comes later has the place, and nobody is taken for another.
 */
START_TEST(an_address_is_never_taken_for_another) {
    for (uint64_t key = 1; key <= 100; key++) {
        ml_reuse_log_add(&reuse, key, 1000 + key);
        ck_assert(ml_reuse_log_outdates(&reuse, key, 999, &awaited));
        ck_assert(awaited);
        ck_assert(!ml_reuse_log_outdates(&reuse, key + 1000, 999, &awaited));
    }
    size_t remembered = 0;
    for (uint64_t key = 1; key <= 100; key++) {
        remembered += ml_reuse_log_outdates(&reuse, key, 999, &awaited);
    }
    ck_assert_uint_ge(remembered, 1);
    ck_assert_uint_le(remembered, ENTRIES);
}
END_TEST

START_TEST(without_memory_it_forgets) {
    budget.max_bytes = 0;
    ml_reuse_log_add(&reuse, 7, 100);
    ck_assert(!ml_reuse_log_outdates(&reuse, 7, 50, &awaited));
    budget.max_bytes = UINT64_MAX;
    ml_reuse_log_add(&reuse, 7, 100);
    ck_assert(ml_reuse_log_outdates(&reuse, 7, 50, &awaited));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("reuse_log");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, an_empty_log_outdates_nothing_and_takes_no_memory);
    tcase_add_test(tcase, what_is_stamped_before_it_there_is_outdated);
    tcase_add_test(tcase, each_missing_event_is_awaited_once);
    tcase_add_test(tcase, the_latest_stamp_of_an_address_stays);
    tcase_add_test(tcase, an_address_is_never_taken_for_another);
    tcase_add_test(tcase, without_memory_it_forgets);
    return run_suite("service/heap/reuse_log", tcase);
}
