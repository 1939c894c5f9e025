#include <check.h>
#include <malloc.h>
#include <stdlib.h>

#include "tests/suite.h"

#include "service/history/timeline.h"

enum { STACKS = 40 };

/* A sanitizer makes them ten times as slow, and cannot tell what malloc has. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PROCESSES = 5 };
#else
enum { PROCESSES = 50 };
#endif

#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS (24 * 3600 * SECOND_NS)

/* A process made up by its counters. */
static struct ml_budget budget;
static struct ml_tracker tracker;
static struct ml_timeline_log *timeline;
static struct ml_snapshot_process copy;

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    tracker = (struct ml_tracker){0};
    copy = (struct ml_snapshot_process){0};
    ml_cells_init(&tracker.cells, &budget);
    timeline = ml_timeline_new(&budget);
    const struct ml_series_now nothing = {0};
    ml_series_note(&timeline->sums, &budget, SECOND_NS, &nothing);
}

static void free_copy(void) {
    for (uint32_t i = 0; i < copy.series_count; i++) {
        free(copy.series[i].points);
    }
    free(copy.series);
    copy = (struct ml_snapshot_process){0};
}

static void tear_down(void) {
    free_copy();
    ml_timeline_free(timeline, &budget);
    ml_cells_fini(&tracker.cells);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

/* Make what a stack holds in one size class so much. */
static void hold(uint32_t node, unsigned size_class, uint64_t live_bytes) {
    const uint64_t key = ml_cell_key(node, 0, 0, size_class);
    uint32_t number = 0;
    ck_assert_int_eq(ml_cells_make(&tracker.cells, key, ml_cells_hash(key), &number), ML_OK);
    struct ml_cell *cell = &tracker.cells.cells[number];
    tracker.totals.live_bytes += live_bytes - cell->live_bytes;
    tracker.totals.total_bytes += live_bytes + 1;
    tracker.totals.total_blocks++;
    cell->live_bytes = live_bytes;
}

static void note(uint64_t ns) {
    ml_timeline_note(timeline, &budget, &tracker, ns, false);
}

/* The series of a stack; NULL if it has none. */
static const struct ml_snapshot_series *stack(uint32_t node) {
    free_copy();
    ck_assert(ml_timeline_copy(timeline, &copy));
    for (uint32_t i = 1; i < copy.series_count; i++) {
        ck_assert(copy.series[i].is_stack);
        if (copy.series[i].node == node) {
            return &copy.series[i];
        }
    }
    return NULL;
}

static uint64_t last_of(const struct ml_snapshot_series *series) {
    return series->points[series->points_count - 1].last_bytes;
}

START_TEST(a_process_has_its_sums_and_its_stacks) {
    for (uint64_t i = 0; i < 100; i++) {
        hold(1, 5, 1000 * i);
        hold(1, 9, 7); /* another cell of the same stack, later */
        hold(2, 5, 300);
        note(2 * SECOND_NS + i * SECOND_NS / 4);
    }
    const struct ml_snapshot_series *leak = stack(1);
    ck_assert_ptr_nonnull(leak);
    ck_assert_uint_ge(last_of(leak), 95007);
    ck_assert_uint_eq(leak->from_ms, 1000); /* it is new: it begins with nothing */
    ck_assert_uint_eq(leak->points[0].least_bytes, 0);
    ck_assert_uint_eq(last_of(stack(2)), 300);
    ck_assert(!copy.series[0].is_stack);
    ck_assert_uint_eq(last_of(&copy.series[0]), 99307);
    ck_assert_uint_eq(copy.series[0].points[copy.series[0].points_count - 1].total_blocks, 300);
}
END_TEST

START_TEST(no_slot_of_what_grows_all_the_time_is_without_a_change) {
    enum { LOOKS = 400 };
    const uint64_t look_ns = SECOND_NS / 4 + SECOND_NS / 64; /* each is a little late */
    uint64_t slots = 0;

    for (uint64_t i = 0; i < LOOKS; i++) {
        hold(1, 5, 1000 * (i + 1));
        note(2 * SECOND_NS + i * look_ns);
    }
    const struct ml_snapshot_series *leak = stack(1);
    for (uint32_t i = 1; i < leak->points_count; i++) {
        ck_assert_uint_gt(leak->points[i].last_bytes, leak->points[i - 1].last_bytes);
        slots++;
    }
    ck_assert_uint_ge(slots, LOOKS * look_ns / SECOND_NS - 2);
}
END_TEST

START_TEST(a_stack_that_comes_later_begins_with_nothing_when_it_was_not_there) {
    hold(1, 5, 100);
    note(3 * SECOND_NS);
    hold(2, 5, 5000);
    note(10 * SECOND_NS);
    const struct ml_snapshot_series *later = stack(2);
    ck_assert_ptr_nonnull(later);
    ck_assert_uint_eq(later->from_ms, 3000);
    ck_assert_uint_eq(later->points[0].last_bytes, 0);
    ck_assert_uint_eq(last_of(later), 5000);
}
END_TEST

START_TEST(who_holds_more_enters_and_who_holds_least_leaves) {
    for (uint32_t node = 1; node <= STACKS; node++) {
        hold(node, 5, 1000 + node);
    }
    note(3 * SECOND_NS);
    ck_assert_ptr_nonnull(stack(STACKS));
    ck_assert_ptr_null(stack(1)); /* not among the first */
    for (uint32_t i = 0; i < STACKS - ML_TIMELINE_ENTERING; i++) {
        hold(1 + i, 5, 100000 * (i + 1));
        note((5 + 2 * (uint64_t)i) * SECOND_NS);
    }
    (void)stack(1);
    ck_assert_uint_eq(copy.series_count, 1 + ML_TIMELINE_STACKS);
    ck_assert_ptr_nonnull(stack(STACKS - ML_TIMELINE_ENTERING));
    ck_assert_ptr_null(stack(STACKS));
}
END_TEST

START_TEST(about_as_much_drives_nobody_out) {
    for (uint32_t node = 1; node <= ML_TIMELINE_STACKS; node++) {
        hold(node, 5, 10000 + 10 * node);
        note((2 + 2 * (uint64_t)node) * SECOND_NS);
    }
    hold(STACKS, 5, 10000 + 1000);
    note(100 * SECOND_NS);
    ck_assert_ptr_null(stack(STACKS));
    hold(STACKS, 5, 12000);
    note(102 * SECOND_NS);
    ck_assert_ptr_nonnull(stack(STACKS));
}
END_TEST

START_TEST(a_process_that_does_nothing_is_not_noted) {
    hold(1, 5, 100);
    note(3 * SECOND_NS);
    const uint64_t last_ns = timeline->sums.last_ns;
    note(60 * SECOND_NS);
    ck_assert_uint_eq(timeline->sums.last_ns, last_ns);
    ml_timeline_note(timeline, &budget, &tracker, 61 * SECOND_NS, true);
    ck_assert_uint_eq(timeline->sums.last_ns, 61 * SECOND_NS);
    ck_assert_uint_eq(last_of(stack(1)), 100);
}
END_TEST

/* What a stack did last is noted, though the process is still since. */
START_TEST(the_last_change_reaches_the_stacks) {
    hold(1, 5, 100);
    note(3 * SECOND_NS);
    hold(1, 5, 900);
    note(3 * SECOND_NS + SECOND_NS / 2);
    note(5 * SECOND_NS);
    ck_assert_uint_eq(last_of(stack(1)), 900);
}
END_TEST

/* Bytes of malloc's that are in use; 0 under a sanitizer, which has its own. */
static uint64_t in_use(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
#endif
}

static struct ml_timeline_log *many[PROCESSES];

static void note_all(uint64_t ns) {
    const uint64_t turn = ns / (16 * SECOND_NS);
    for (uint32_t node = 1; node <= STACKS; node++) {
        const uint64_t large_bytes = 1000000 + 10 * node + ns / 7 % 10007;
        hold(node, 5, node <= ML_TIMELINE_STACKS && node <= turn ? large_bytes : node);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        ml_timeline_note(many[i], &budget, &tracker, ns, false);
    }
}

/* Everything changes at every look. Far back no slot is finer than what is noted here, so that it
 * is as full as if all had been noted. */
START_TEST(a_day_of_50_processes_takes_less_than_64_megabytes_with_a_dump_of_it) {
    static struct ml_snapshot_process copies[PROCESSES];
    const uint64_t before_bytes = in_use();
    for (uint32_t i = 0; i < PROCESSES; i++) {
        many[i] = ml_timeline_new(&budget);
    }
    uint64_t ns = SECOND_NS;
    for (; ns < DAY_NS - 1800 * SECOND_NS; ns += 16 * SECOND_NS) {
        note_all(ns);
    }
    for (; ns < DAY_NS; ns += SECOND_NS / 4) {
        note_all(ns);
    }
    uint64_t points = 0;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        ck_assert(ml_timeline_copy(many[i], &copies[i]));
        ck_assert_uint_eq(copies[i].series_count, 1 + ML_TIMELINE_STACKS);
        for (uint32_t k = 0; k < copies[i].series_count; k++) {
            points += copies[i].series[k].points_count;
        }
    }
    const uint64_t used_bytes = in_use() - before_bytes;
    ck_assert_uint_gt(points, PROCESSES * ML_TIMELINE_STACKS * UINT64_C(500));
    ck_assert_uint_lt(budget.used_bytes, 32 << 20);
    ck_assert_uint_lt(used_bytes, 64 << 20);
    ck_assert_uint_lt(budget.used_bytes, ML_TIMELINE_MAX_BYTES);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        copy = copies[i];
        free_copy();
        ml_timeline_free(many[i], &budget);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("timeline");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_process_has_its_sums_and_its_stacks);
    tcase_add_test(tcase, no_slot_of_what_grows_all_the_time_is_without_a_change);
    tcase_add_test(tcase, a_stack_that_comes_later_begins_with_nothing_when_it_was_not_there);
    tcase_add_test(tcase, who_holds_more_enters_and_who_holds_least_leaves);
    tcase_add_test(tcase, about_as_much_drives_nobody_out);
    tcase_add_test(tcase, a_process_that_does_nothing_is_not_noted);
    tcase_add_test(tcase, the_last_change_reaches_the_stacks);
    tcase_add_test(tcase, a_day_of_50_processes_takes_less_than_64_megabytes_with_a_dump_of_it);
    return run_suite("service/timeline", tcase);
}
