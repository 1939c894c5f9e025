#include "service/snapshot/accounting.h"

#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"

static uint64_t sum(const struct ml_accounting *accounting) {
    return accounting->received + accounting->in_flight + ml_accounting_lost(accounting);
}

START_TEST(what_came_whole_is_balanced) {
    const struct ml_accounting_facts facts = {
        .looked = true, .ended = true, .produced = 100, .received = 100};
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert(accounting.balanced);
    ck_assert_uint_eq(accounting.produced, 100);
    ck_assert_uint_eq(ml_accounting_lost(&accounting), 0);
    ck_assert_uint_eq(accounting.in_flight, 0);
}
END_TEST

START_TEST(every_reason_has_its_own_count) {
    const struct ml_accounting_facts facts = {
        .looked = true,
        .ended = true,
        .produced = 100,
        .received = 60,
        .overrun = 30,
        .no_pipe = 9,
        .no_lane = 5,
        .nested = 2,
        .busy_lanes = 1,
    };
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert(accounting.balanced);
    ck_assert_uint_eq(accounting.produced, 107);
    ck_assert_uint_eq(accounting.overrun, 30);
    ck_assert_uint_eq(accounting.no_pipe, 9);
    ck_assert_uint_eq(accounting.no_lane, 5);
    ck_assert_uint_eq(accounting.nested, 2);
    ck_assert_uint_eq(accounting.in_flight, 1);
    ck_assert_uint_eq(ml_accounting_lost(&accounting), 46);
    ck_assert_uint_eq(sum(&accounting), accounting.produced);
}
END_TEST

START_TEST(what_staging_saved_of_a_dropped_chunk_is_not_lost) {
    const struct ml_accounting_facts facts = {
        .looked = true, .ended = true, .produced = 100, .received = 90, .overrun = 30};
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert(accounting.balanced);
    ck_assert_uint_eq(accounting.overrun, 10);
    ck_assert_uint_eq(sum(&accounting), 100);
}
END_TEST

START_TEST(a_gap_that_nobody_explains_is_a_fault) {
    const struct ml_accounting_facts facts = {
        .looked = true,
        .ended = true,
        .produced = 100,
        .received = 90,
        .overrun = 5,
        .busy_lanes = 2};
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert(!accounting.balanced);
    ck_assert_uint_eq(accounting.in_flight, 2);
    ck_assert_uint_eq(accounting.unaccounted, 3);
    ck_assert_uint_eq(ml_accounting_lost(&accounting), 8);
    ck_assert_uint_eq(sum(&accounting), 100);
}
END_TEST

START_TEST(more_than_was_produced_is_a_fault_once_nothing_moves) {
    struct ml_accounting_facts facts = {.looked = true, .produced = 100, .received = 101};
    ck_assert(ml_accounting_of(&facts).balanced);
    ck_assert_uint_eq(ml_accounting_of(&facts).produced, 101);
    facts.ended = true;
    ck_assert(!ml_accounting_of(&facts).balanced);
}
END_TEST

START_TEST(a_running_process_has_events_on_their_way) {
    const struct ml_accounting_facts facts = {.looked = true, .produced = 100, .received = 93};
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert(accounting.balanced);
    ck_assert_uint_eq(accounting.in_flight, 7);
    ck_assert_uint_eq(ml_accounting_lost(&accounting), 0);
}
END_TEST

START_TEST(a_stream_that_is_read_no_more_says_so) {
    const struct ml_accounting_facts facts = {
        .looked = true, .ended = true, .refused = true, .produced = 100, .received = 40};
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert(accounting.balanced);
    ck_assert_uint_eq(accounting.refused, 60);
}
END_TEST

START_TEST(without_staging_the_stream_is_all_there_is) {
    const struct ml_accounting_facts facts = {.ended = true, .received = 40, .overrun = 3};
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert(accounting.balanced);
    ck_assert_uint_eq(accounting.produced, 43);
    ck_assert_uint_eq(ml_accounting_lost(&accounting), 3);
}
END_TEST

START_TEST(a_client_that_lies_wraps_no_sum) {
    const struct ml_accounting_facts facts = {
        .looked = true,
        .ended = true,
        .produced = UINT64_MAX,
        .received = 1,
        .overrun = UINT64_MAX,
        .no_pipe = UINT64_MAX,
        .no_lane = UINT64_MAX,
        .nested = UINT64_MAX,
        .busy_lanes = UINT32_MAX,
    };
    const struct ml_accounting accounting = ml_accounting_of(&facts);
    ck_assert_uint_eq(accounting.produced, UINT64_MAX);
    ck_assert_uint_eq(accounting.overrun, UINT64_MAX - 1);
    ck_assert_uint_eq(ml_accounting_lost(&accounting), UINT64_MAX);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("accounting");
    tcase_add_test(tcase, what_came_whole_is_balanced);
    tcase_add_test(tcase, every_reason_has_its_own_count);
    tcase_add_test(tcase, what_staging_saved_of_a_dropped_chunk_is_not_lost);
    tcase_add_test(tcase, a_gap_that_nobody_explains_is_a_fault);
    tcase_add_test(tcase, more_than_was_produced_is_a_fault_once_nothing_moves);
    tcase_add_test(tcase, a_running_process_has_events_on_their_way);
    tcase_add_test(tcase, a_stream_that_is_read_no_more_says_so);
    tcase_add_test(tcase, without_staging_the_stream_is_all_there_is);
    tcase_add_test(tcase, a_client_that_lies_wraps_no_sum);
    return run_suite("service/accounting", tcase);
}
