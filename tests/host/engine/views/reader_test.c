#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>
#include <ev.h>

#include "tests/suite.h"

#include "host/engine/views/reader.h"

enum { TOLD_MAX = 16 };

static struct ev_loop *loop;
static struct ml_view_reader *reader;
static struct {
    uint32_t id;
    uint64_t serial;
    uint32_t threads, regions;
    bool has_status;
    uint32_t tree_reading;
} told[TOLD_MAX];
static uint32_t told_count;

static void
on_view(void *context, uint32_t id, uint64_t serial, const struct ml_process_view *view) {
    ck_assert_ptr_eq(context, &told_count);
    ck_assert_uint_lt(told_count, TOLD_MAX);
    told[told_count].id = id;
    told[told_count].serial = serial;
    told[told_count].threads = view->threads.count;
    told[told_count].regions = view->regions.count;
    told[told_count].has_status = view->status.is_known;
    told[told_count].tree_reading = view->tree_reading;
    told_count++;
}

static void setup(void) {
    told_count = 0;
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    const struct ml_view_reader_setup how = {
        .loop = loop, .clock = ML_CLOCK_MONOTONIC, .on_view = on_view, .context = &told_count};
    struct ml_holder holder;
    ck_assert_int_gt(ml_holder_open(&holder, NULL), 0);
    reader = ml_view_reader_new(&how, holder);
    ck_assert_ptr_nonnull(reader);
}

static void teardown(void) {
    ml_view_reader_free(reader);
    ev_loop_destroy(loop);
}

static uint64_t ask(uint32_t id, pid_t pid, bool hold) {
    const struct ml_view_question question = {.id = id, .pid = pid, .is_to_be_held = hold};
    return ml_view_reader_ask(reader, &question);
}

static void run_until(uint32_t count) {
    while (told_count < count) {
        (void)ev_run(loop, EVRUN_ONCE);
    }
}

START_TEST(views_are_told_in_order_on_the_loop_alone) {
    ck_assert_uint_eq(ask(1, getpid(), false), 1);
    ck_assert_uint_eq(ask(2, getppid(), false), 2);
    ck_assert_uint_eq(told_count, 0);
    run_until(2);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(told[i].id, i + 1);
        ck_assert_uint_eq(told[i].serial, i + 1);
        ck_assert_uint_gt(told[i].threads, 0);
        ck_assert_uint_gt(told[i].regions, 0);
        ck_assert(told[i].has_status);
    }
}
END_TEST

START_TEST(of_a_process_that_is_gone_an_empty_view_is_told) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    (void)ask(7, child, true);
    run_until(1);
    ck_assert_uint_eq(told[0].threads, 0);
    ck_assert_uint_eq(told[0].regions, 0);
    ck_assert(!told[0].has_status);
}
END_TEST

/* Each question is told, or stands behind one with its number. */
START_TEST(a_question_that_waits_is_not_asked_twice) {
    uint64_t last = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t serial = ask(1, getpid(), false);
        ck_assert(serial == last || serial == last + 1);
        last = serial;
        if (last == TOLD_MAX) {
            break;
        }
    }
    run_until((uint32_t)last);
    ck_assert_uint_eq(told[told_count - 1].serial, last);
}
END_TEST

/* One that waits may be asked for in a reading of all processes meanwhile. */
START_TEST(a_view_tells_the_reading_that_it_belongs_to) {
    const struct ml_view_question in_tree = {.id = 9, .pid = getpid(), .tree_reading = 3};
    for (uint32_t id = 1; id <= 8; id++) { /* it waits behind them */
        (void)ask(id, getpid(), false);
    }
    const uint64_t serial = ask(9, getpid(), false);
    const uint64_t again = ml_view_reader_ask(reader, &in_tree);
    run_until((uint32_t)again);
    ck_assert_uint_ge(again, serial);
    for (uint32_t i = 0; i < again; i++) {
        ck_assert_uint_eq(told[i].tree_reading, i + 1 == again ? 3 : 0);
    }
}
END_TEST

START_TEST(at_the_end_what_waits_is_not_told) {
    for (uint32_t id = 1; id <= 50; id++) {
        (void)ask(id, getpid(), false);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, views_are_told_in_order_on_the_loop_alone);
    tcase_add_test(tests, of_a_process_that_is_gone_an_empty_view_is_told);
    tcase_add_test(tests, a_question_that_waits_is_not_asked_twice);
    tcase_add_test(tests, a_view_tells_the_reading_that_it_belongs_to);
    tcase_add_test(tests, at_the_end_what_waits_is_not_told);
    return run_suite("host/view_reader", tests);
}
