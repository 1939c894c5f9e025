#include <check.h>
#include <stdlib.h>

#include "service/session/client_internal.h"
#include "service/session/internal.h"
#include "service/session/snapshot_build.h"
#include "service/session/session.h"
#include "tests/service/describe.h"
#include "tests/service/session/fixture.h"
#include "tests/suite.h"

/* What a snapshot tells of the moment at which all processes together were largest. */

enum { PAGE = 4096, MIB_KB = 1024, FIRST = 1, SECOND = 2 };

static const uint64_t base = 0x100000;

static struct ml_host_view *view_of(uint32_t id, uint64_t private_kb, uint32_t reading) {
    struct memlog_service_memory_region regions[] = {
        {.start = base,
         .end = base + private_kb * 1024,
         .size_kb = private_kb,
         .private_dirty_kb = private_kb}};
    const struct memlog_service_show_process_request message = {
        .view = {.id = id, .regions = {regions, 1}, .tree_reading = reading}};
    struct ml_host_view *view = ml_host_view_of(&message);
    ck_assert_ptr_nonnull(view);
    return view;
}

static void look(uint32_t id, uint64_t private_kb, uint32_t reading) {
    struct ml_host_view *view = view_of(id, private_kb, reading);
    ml_client_lay(clients[id], view, NULL);
    ml_client_show(clients[id], view);
}

static void both(uint64_t first_kb, uint64_t second_kb, uint32_t reading) {
    look(FIRST, first_kb, reading);
    look(SECOND, second_kb, reading);
}

static void set_up(void) {
    session_set_up();
    add_client(FIRST);
    add_client(SECOND);
}

static struct ml_snapshot *snapshot(void) {
    struct ml_snapshot *made = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &made), ML_OK);
    return made;
}

/* The private memory of the views that a snapshot has; 0: none. */
static void check(uint64_t first_kb, uint64_t second_kb) {
    struct ml_snapshot *made = snapshot();
    ck_assert_uint_eq(made->processes_count, 2);
    const struct ml_host_view *first = made->processes[0].tree_view;
    const struct ml_host_view *second = made->processes[1].tree_view;
    ck_assert_uint_eq(first != NULL ? first->private_kb : 0, first_kb);
    ck_assert_uint_eq(second != NULL ? second->private_kb : 0, second_kb);
    ml_snapshot_free(made);
}

START_TEST(what_is_read_for_itself_is_of_no_reading_of_the_tree) {
    look(FIRST, 60 * MIB_KB, 0);
    look(SECOND, 60 * MIB_KB, 0);
    check(0, 0);
}
END_TEST

/* Each process has had 60 MiB, but never at one moment. */
START_TEST(the_larger_reading_is_kept_as_a_whole) {
    both(60 * MIB_KB, MIB_KB, 1);
    look(FIRST, 80 * MIB_KB, 0);
    both(2 * MIB_KB, 60 * MIB_KB, 2);
    check(2 * MIB_KB, 60 * MIB_KB);
    both(MIB_KB, 60 * MIB_KB, 3);
    check(2 * MIB_KB, 60 * MIB_KB);
    both(70 * MIB_KB, 70 * MIB_KB, 4);
    check(70 * MIB_KB, 70 * MIB_KB);
}
END_TEST

START_TEST(a_reading_that_breaks_off_counts_if_it_has_more_already) {
    both(10 * MIB_KB, 20 * MIB_KB, 1);
    look(FIRST, 5 * MIB_KB, 2);
    check(10 * MIB_KB, 20 * MIB_KB);
    look(SECOND, 40 * MIB_KB, 2);
    check(5 * MIB_KB, 40 * MIB_KB);
    look(FIRST, 50 * MIB_KB, 3);
    check(50 * MIB_KB, 0);
    look(SECOND, 40 * MIB_KB, 3);
    check(50 * MIB_KB, 40 * MIB_KB);
}
END_TEST

START_TEST(who_has_ended_keeps_its_view_until_there_is_a_larger_reading) {
    both(60 * MIB_KB, 10 * MIB_KB, 1);
    end_client(FIRST, 100);
    look(SECOND, 50 * MIB_KB, 2);
    check(60 * MIB_KB, 10 * MIB_KB);
    look(SECOND, 80 * MIB_KB, 3);
    check(0, 80 * MIB_KB);
}
END_TEST

START_TEST(what_goes_for_want_of_room_is_counted) {
    both(60 * MIB_KB, 10 * MIB_KB, 1);
    check(60 * MIB_KB, 10 * MIB_KB);
    ck_assert(ml_client_return_views(clients[FIRST]));
    ml_client_free_returned(clients[FIRST]);
    check(0, 10 * MIB_KB);
    struct ml_snapshot *made = snapshot();
    ck_assert_uint_eq(made->tree_views_dropped, 1);
    ml_snapshot_free(made);
    both(80 * MIB_KB, 10 * MIB_KB, 2);
    made = snapshot();
    ck_assert_uint_eq(made->tree_views_dropped, 0);
    ml_snapshot_free(made);
}
END_TEST

START_TEST(all_room_is_given_back) {
    const uint64_t before = clients[FIRST]->budget.used_bytes;
    look(FIRST, 60 * MIB_KB, 1);
    look(FIRST, 70 * MIB_KB, 2);
    look(FIRST, 80 * MIB_KB, 3);
    ml_client_show_nothing(clients[FIRST]);
    ck_assert_uint_eq(clients[FIRST]->budget.used_bytes, before);
}
END_TEST

/* A block of 100 bytes on each of 16 pages, of node 1. Half of them are freed afterwards. */
START_TEST(cells_have_what_they_held_at_that_moment) {
    enum { PAGES = 16 };
    for (uint32_t i = 0; i < PAGES; i++) {
        builder_alloc(builders[FIRST], 0, 10 + i, base + (uint64_t)i * PAGE, 100, 1);
    }
    advance(100);
    look(FIRST, PAGES * PAGE / 1024, 1);
    for (uint32_t i = 0; i < PAGES / 2; i++) {
        builder_free_block(builders[FIRST], 0, 200, base + (uint64_t)i * PAGE);
    }
    advance(300);
    look(FIRST, PAGES * PAGE / 1024, 0);
    struct ml_snapshot *made = snapshot();
    const struct ml_snapshot_process *process = &made->processes[0];
    ck_assert(process->tree_cells_were_laid);
    ck_assert_uint_eq(process->cells_count, 1);
    ck_assert_uint_eq(process->cells[0].resident_private_bytes, PAGES / 2 * 100);
    ck_assert_uint_eq(process->cells[0].tree_private_bytes, PAGES * 100);
    ml_snapshot_free(made);
}
END_TEST

/* It lived shortest, so it would be the first to become one of many. */
START_TEST(whoever_was_in_it_is_folded_last) {
    add_client(3);
    add_client(4);
    for (uint32_t id = 1; id <= 4; id++) {
        describe(clients[id], "cc1", "cc1", "/bin/cc1");
    }
    both(60 * MIB_KB, 10 * MIB_KB, 1);
    end_client(FIRST, 100);
    end_client(3, 300);
    end_client(4, 400);
    end_client(SECOND, 500);
    ml_session_keep(session, 2);
    struct ml_snapshot *made = snapshot();
    uint32_t views = 0;
    for (uint32_t i = 0; i < made->processes_count; i++) {
        views += made->processes[i].tree_view != NULL ? 1 : 0;
    }
    ck_assert_uint_eq(made->processes_count, 3); /* two, and one that stands for the others */
    ck_assert_uint_eq(views, 2);
    ck_assert_uint_eq(made->tree_views_dropped, 0);
    ml_snapshot_free(made);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, session_tear_down);
    tcase_add_test(tests, what_is_read_for_itself_is_of_no_reading_of_the_tree);
    tcase_add_test(tests, the_larger_reading_is_kept_as_a_whole);
    tcase_add_test(tests, a_reading_that_breaks_off_counts_if_it_has_more_already);
    tcase_add_test(tests, who_has_ended_keeps_its_view_until_there_is_a_larger_reading);
    tcase_add_test(tests, what_goes_for_want_of_room_is_counted);
    tcase_add_test(tests, all_room_is_given_back);
    tcase_add_test(tests, cells_have_what_they_held_at_that_moment);
    tcase_add_test(tests, whoever_was_in_it_is_folded_last);
    return run_suite("service/client_tree_views", tests);
}
