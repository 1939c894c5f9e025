#include "host/engine/processes/unrecorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static const struct ml_ending clean = {.known = true};
static const struct memlog_service_moment timestamp = {.monotonic_ns = 9};

static struct ml_unrecorded *
named(struct ml_unrecorded_table *table, pid_t pid, const char *name, uint64_t bytes) {
    struct ml_unrecorded *one = ml_unrecorded_add(table, pid);
    ck_assert_ptr_nonnull(one);
    (void)snprintf(one->name, sizeof(one->name), "%s", name);
    (void)snprintf(one->reason, sizeof(one->reason), "static");
    ml_unrecorded_executable(one, "/bin/it");
    one->footprint_bytes = bytes;
    return one;
}

/* How many processes the table tells of, and that its numbers agree with what it holds. */
static uint64_t told(const struct ml_unrecorded_table *table) {
    uint64_t count = 0;
    uint32_t running = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct ml_unrecorded *one = table->items[i];
        ck_assert_int_eq(one->folded_processes > 0, i < table->folds_count);
        count += one->folded_processes > 0 ? one->folded_processes : 1;
        running += one->state == ML_MEMBER_RUNNING;
        if (i > table->folds_count) {
            ck_assert_uint_gt(one->id, table->items[i - 1]->id);
        }
    }
    ck_assert_uint_eq(running, table->running_count);
    return count;
}

START_TEST(an_exec_and_a_reason_change_what_it_is_and_nothing_else_does) {
    static const struct {
        enum ml_unrecorded_kind kind, after_exec, after_reason;
    } cases[] = {
        {ML_UNRECORDED_FORK, ML_UNRECORDED_PROGRAM, ML_UNRECORDED_FORK},
        {ML_UNRECORDED_IDLE_FORK, ML_UNRECORDED_PROGRAM, ML_UNRECORDED_LOST_FORK},
        {ML_UNRECORDED_LOST_FORK, ML_UNRECORDED_LOST_FORK, ML_UNRECORDED_LOST_FORK},
        {ML_UNRECORDED_PROGRAM, ML_UNRECORDED_PROGRAM, ML_UNRECORDED_TOLD_PROGRAM},
        {ML_UNRECORDED_TOLD_PROGRAM, ML_UNRECORDED_TOLD_PROGRAM, ML_UNRECORDED_TOLD_PROGRAM},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_unrecorded made = {.kind = cases[i].kind};
        struct ml_unrecorded told = {.kind = cases[i].kind};
        ml_unrecorded_set_kind(&made, ML_UNRECORDED_EXEC);
        ml_unrecorded_set_kind(&told, ML_UNRECORDED_TELL);
        ck_assert_int_eq(made.kind, cases[i].after_exec);
        ck_assert_int_eq(told.kind, cases[i].after_reason);
    }
}
END_TEST

START_TEST(ids_are_those_of_no_member_and_never_come_back) {
    struct ml_unrecorded_table table;
    ml_unrecorded_init(&table);
    struct ml_unrecorded *first = named(&table, 7, "a", 0);
    ck_assert_uint_gt(first->id, ML_MEMBERS_MAX);
    const uint32_t id = first->id;
    ml_unrecorded_remove(&table, first);
    ck_assert_ptr_null(ml_unrecorded_newest(&table, 7));
    ck_assert_uint_gt(named(&table, 7, "a", 0)->id, id);
    ml_unrecorded_fini(&table);
}
END_TEST

START_TEST(a_pid_that_comes_back_is_another_process) {
    struct ml_unrecorded_table table;
    ml_unrecorded_init(&table);
    struct ml_unrecorded *old = named(&table, 7, "a", 0);
    ck_assert_ptr_eq(ml_unrecorded_running(&table, 7), old);
    ml_unrecorded_end(&table, old, ML_MEMBER_EVENT_EXIT, &clean, timestamp);
    ck_assert_ptr_null(ml_unrecorded_running(&table, 7));
    ck_assert_ptr_eq(ml_unrecorded_newest(&table, 7), old);
    struct ml_unrecorded *new = named(&table, 7, "b", 0);
    ck_assert_ptr_eq(ml_unrecorded_running(&table, 7), new);
    /* An end is told once. */
    ml_unrecorded_end(&table, old, ML_MEMBER_EVENT_KILL, &clean, timestamp);
    ck_assert_int_eq(old->state, ML_MEMBER_EXITED);
    ck_assert_uint_eq(told(&table), 2);
    ml_unrecorded_fini(&table);
}
END_TEST

START_TEST(a_hundred_thousand_short_ones_are_folded_and_none_is_forgotten) {
    enum { MANY = 100000 };
    struct ml_unrecorded_table table;
    ml_unrecorded_init(&table);
    struct ml_unrecorded *lives = named(&table, 1, "lives", 5);
    for (uint32_t i = 0; i < MANY; i++) {
        struct ml_unrecorded *one = named(&table, (pid_t)(2 + i), i % 2 == 0 ? "even" : "odd", i);
        const struct ml_ending ending = {.known = true, .exit_code = i % 2 == 0 ? 0 : 3};
        ml_unrecorded_end(&table, one, ML_MEMBER_EVENT_EXIT, &ending, timestamp);
        ck_assert_uint_le(table.count, ML_UNRECORDED_KEPT + 4);
    }
    ck_assert_uint_eq(told(&table), MANY + 1);
    ck_assert_uint_eq(table.folds_count, 2);
    ck_assert_ptr_eq(ml_unrecorded_running(&table, 1), lives);
    uint64_t failed = 0;
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_gt(table.items[i]->footprint_bytes, MANY / 2);
        ck_assert_str_eq(table.items[i]->executable, "/bin/it");
        failed += table.items[i]->folded_failed;
    }
    ck_assert_uint_gt(failed, MANY / 3);
    /* The newest stay apart. */
    ck_assert_ptr_nonnull(ml_unrecorded_newest(&table, 1 + MANY));
    ck_assert_ptr_null(ml_unrecorded_newest(&table, 2));
    ml_unrecorded_fini(&table);
}
END_TEST

START_TEST(running_ones_are_found_by_id_while_others_are_folded) {
    enum { MANY = 3 * ML_UNRECORDED_KEPT };
    struct ml_unrecorded_table table;
    ml_unrecorded_init(&table);
    ck_assert_ptr_null(ml_unrecorded_next_running(&table, 0));
    for (uint32_t i = 0; i < MANY; i++) {
        named(&table, (pid_t)(2 + i), i % 2 == 0 ? "even" : "odd", i);
    }
    uint32_t seen = 0;
    for (struct ml_unrecorded *one = ml_unrecorded_next_running(&table, 0); one != NULL; seen++) {
        const uint32_t id = one->id;
        ck_assert_int_eq(one->pid, (pid_t)(2 + seen));
        if (seen % 3 != 0) {
            ml_unrecorded_end(&table, one, ML_MEMBER_EVENT_EXIT, &clean, timestamp);
        }
        one = ml_unrecorded_next_running(&table, id);
    }
    ck_assert_uint_eq(seen, MANY);
    ck_assert_uint_gt(table.folds_count, 0);
    ck_assert_uint_eq(told(&table), MANY);
    ml_unrecorded_fini(&table);
}
END_TEST

START_TEST(of_too_many_programs_the_rest_goes_together) {
    enum { MANY = 20000 };
    struct ml_unrecorded_table table;
    ml_unrecorded_init(&table);
    for (uint32_t i = 0; i < MANY; i++) {
        char name[ML_PROCESS_NAME_BYTES];
        (void)snprintf(name, sizeof(name), "p%u", i);
        struct ml_unrecorded *one = named(&table, (pid_t)(2 + i), name, i);
        ml_unrecorded_end(&table, one, ML_MEMBER_EVENT_EXIT, &clean, timestamp);
    }
    ck_assert_uint_eq(told(&table), MANY);
    ck_assert_uint_le(table.folds_count, ML_UNRECORDED_FOLDS_MAX + 1);
    ml_unrecorded_fini(&table);
}
END_TEST

START_TEST(more_running_ones_than_there_is_room_for_are_counted) {
    struct ml_unrecorded_table table;
    ml_unrecorded_init(&table);
    for (uint32_t i = 0; i < ML_UNRECORDED_RUNNING_MAX; i++) {
        ck_assert_ptr_nonnull(ml_unrecorded_add(&table, (pid_t)(2 + i)));
    }
    ck_assert_ptr_null(ml_unrecorded_add(&table, 1));
    ck_assert_uint_eq(table.left_out, 1);
    ml_unrecorded_fini(&table);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("unrecorded");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, an_exec_and_a_reason_change_what_it_is_and_nothing_else_does);
    tcase_add_test(tcase, ids_are_those_of_no_member_and_never_come_back);
    tcase_add_test(tcase, a_pid_that_comes_back_is_another_process);
    tcase_add_test(tcase, a_hundred_thousand_short_ones_are_folded_and_none_is_forgotten);
    tcase_add_test(tcase, running_ones_are_found_by_id_while_others_are_folded);
    tcase_add_test(tcase, of_too_many_programs_the_rest_goes_together);
    tcase_add_test(tcase, more_running_ones_than_there_is_room_for_are_counted);
    return run_suite("host/unrecorded", tcase);
}
