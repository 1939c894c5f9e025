#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/suite.h"

#include "service/heap/change_log.h"

enum { LOGS = 3, CHANGES = 40 };

static struct ml_change changes[LOGS][CHANGES];
static struct ml_change_log logs[LOGS];
static struct ml_change_log *heap[LOGS];

static void set_up(void) {
    for (uint32_t i = 0; i < LOGS; i++) {
        logs[i] = (struct ml_change_log){.changes = changes[i], .capacity = CHANGES, .order = i};
    }
}

static void add(uint32_t log, uint64_t time, int64_t bytes) {
    const struct ml_change change = {.time = time, .bytes = bytes, .blocks = bytes < 0 ? -1 : 1};
    ml_change_log_add(&logs[log], &change);
}

START_TEST(what_is_freed_first_makes_room) {
    struct ml_tree tree = {.live_bytes = 100, .live_blocks = 1, .peak_bytes = 120, .epoch = 7};
    add(0, 10, -50);
    add(1, 11, 60);
    ck_assert(!ml_change_logs_stay_below(logs, LOGS, &tree));
    ck_assert(!ml_change_logs_merge(logs, LOGS, heap, &tree));
    ck_assert_uint_eq(tree.live_bytes, 110);
    ck_assert_uint_eq(tree.live_blocks, 1);
    ck_assert_uint_eq(tree.peak_bytes, 120);
    ck_assert_uint_eq(tree.epoch, 7);
}
END_TEST

START_TEST(what_is_freed_last_does_not) {
    struct ml_tree tree = {.live_bytes = 100, .live_blocks = 1, .peak_bytes = 120, .epoch = 7};
    add(0, 12, -50);
    add(1, 11, 60);
    add(2, 13, 5);
    ck_assert(ml_change_logs_merge(logs, LOGS, heap, &tree));
    ck_assert_uint_eq(tree.live_bytes, 115);
    ck_assert_uint_eq(tree.peak_bytes, 160);
    ck_assert_uint_eq(tree.peak_blocks, 2);
    ck_assert_uint_eq(tree.peak_ticks, 11);
    ck_assert_uint_eq(tree.epoch, 8);
    ck_assert_uint_eq(logs[0].at_peak, 0);
    ck_assert_uint_eq(logs[1].at_peak, 1);
    ck_assert_uint_eq(logs[2].at_peak, 0);
}
END_TEST

START_TEST(at_equal_stamps_the_earlier_process_comes_first) {
    struct ml_tree tree = {.live_bytes = 100, .peak_bytes = 100, .epoch = 1};
    add(0, 10, -30);
    add(1, 10, 20);
    add(1, 10, 15); /* 105, the maximum */
    add(2, 10, -1);
    ck_assert(ml_change_logs_merge(logs, LOGS, heap, &tree));
    ck_assert_uint_eq(tree.peak_bytes, 105);
    ck_assert_uint_eq(logs[0].at_peak, 1);
    ck_assert_uint_eq(logs[1].at_peak, 2);
    ck_assert_uint_eq(logs[2].at_peak, 0);
}
END_TEST

START_TEST(sums_of_maxima_that_stay_below_need_no_merge) {
    const struct ml_tree tree = {.live_bytes = 100, .peak_bytes = 180};
    add(0, 10, 30);
    add(0, 20, -30);
    add(0, 30, 40);
    add(1, 10, -100);
    add(1, 20, 140); /* 40 above its start at most */
    ck_assert(ml_change_logs_stay_below(logs, LOGS, &tree));
    add(1, 30, 1);
    ck_assert(!ml_change_logs_stay_below(logs, LOGS, &tree));
}
END_TEST

/* Every event's place found the slow way. */
START_TEST(merges_as_a_sort_would) {
    srand((unsigned)_i + 1);
    uint64_t time[LOGS] = {0};
    struct ml_tree tree = {.live_bytes = 100000, .peak_bytes = 100000, .epoch = 1};
    for (int i = 0; i < LOGS * CHANGES; i++) {
        const uint32_t log = (uint32_t)rand() % LOGS;
        if (logs[log].count < CHANGES) {
            time[log] += (uint64_t)(rand() % 3);
            add(log, time[log], rand() % 200 - 100);
        }
    }
    uint32_t at[LOGS] = {0};
    uint32_t at_peak[LOGS] = {0};
    uint64_t live = tree.live_bytes;
    uint64_t peak = tree.peak_bytes;
    for (;;) {
        uint32_t first = LOGS;
        for (uint32_t i = 0; i < LOGS; i++) {
            if (at[i] < logs[i].count &&
                (first == LOGS || changes[i][at[i]].time < changes[first][at[first]].time)) {
                first = i;
            }
        }
        if (first == LOGS) {
            break;
        }
        live += (uint64_t)changes[first][at[first]++].bytes;
        if (live > peak) {
            peak = live;
            for (uint32_t i = 0; i < LOGS; i++) {
                at_peak[i] = at[i];
            }
        }
    }
    const bool moved = ml_change_logs_merge(logs, LOGS, heap, &tree);
    ck_assert_int_eq(moved, peak > 100000);
    ck_assert_uint_eq(tree.live_bytes, live);
    ck_assert_uint_eq(tree.peak_bytes, peak);
    for (uint32_t i = 0; i < LOGS && moved; i++) {
        ck_assert_uint_eq(logs[i].at_peak, at_peak[i]);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("change_log");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, what_is_freed_first_makes_room);
    tcase_add_test(tcase, what_is_freed_last_does_not);
    tcase_add_test(tcase, at_equal_stamps_the_earlier_process_comes_first);
    tcase_add_test(tcase, sums_of_maxima_that_stay_below_need_no_merge);
    tcase_add_loop_test(tcase, merges_as_a_sort_would, 0, 200);
    return run_suite("service/change_log", tcase);
}
