#include <check.h>
#include <stdlib.h>

#include "service/session/client_internal.h"
#include "service/session/snapshot_build.h"
#include "tests/service/session/fixture.h"
#include "tests/suite.h"

/* What a snapshot tells of pages: of the moment of the view, by cell. */

enum { PAGE = 4096, CLIENT = 1, PAGES = 16 };

static const uint64_t base = 0x100000;

/* A mapping of which all pages are resident. */
static struct ml_host_view *view_of(uint64_t private_kb) {
    struct memlog_service_memory_region regions[] = {
        {.start = base,
         .end = base + (uint64_t)PAGES * PAGE,
         .size_kb = PAGES * PAGE / 1024,
         .private_dirty_kb = private_kb}};
    const struct memlog_service_show_process_request message = {
        .view = {.id = CLIENT, .regions = {regions, 1}}};
    struct ml_host_view *view = ml_host_view_of(&message);
    ck_assert_ptr_nonnull(view);
    return view;
}

static void look(uint64_t private_kb) {
    struct ml_host_view *view = view_of(private_kb);
    ml_client_lay(clients[CLIENT], view, NULL);
    ml_client_show(clients[CLIENT], view);
}

/* One of 100 bytes of node 1 on each page, one of 400 of node 2 on each second. */
static void put_blocks(void) {
    add_client(CLIENT);
    for (uint32_t i = 0; i < PAGES; i++) {
        builder_alloc(builders[CLIENT], 0, 10 + i, base + (uint64_t)i * PAGE, 100, 1);
        if (i % 2 == 0) {
            builder_alloc(builders[CLIENT], 0, 10 + i, base + (uint64_t)i * PAGE + 1024, 400, 2);
        }
    }
    advance(100);
}

static struct ml_snapshot *snapshot(void) {
    struct ml_snapshot *made = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &made), ML_OK);
    return made;
}

static const struct ml_snapshot_cell *
cell_of(const struct ml_snapshot_process *process, uint32_t node) {
    for (uint32_t i = 0; i < process->cells_count; i++) {
        if (process->cells[i].node == node) {
            return &process->cells[i];
        }
    }
    ck_abort_msg("no such cell");
    return NULL;
}

/* 3,596 bytes of each second page are shared 1 : 4; what rounding leaves is the lower block's. */
static void check_cells(const struct ml_snapshot_process *process) {
    const struct ml_snapshot_cell *one = cell_of(process, 1);
    const struct ml_snapshot_cell *two = cell_of(process, 2);
    ck_assert(process->cells_were_laid);
    ck_assert_uint_eq(one->resident_private_bytes, PAGES * 100);
    ck_assert_uint_eq(one->alone_bytes, PAGES / 2 * PAGE);
    ck_assert_uint_eq(one->waste_bytes, PAGES / 2 * (PAGE - 100) + PAGES / 2 * 720);
    ck_assert_uint_eq(two->resident_private_bytes, PAGES / 2 * 400);
    ck_assert_uint_eq(two->alone_bytes, 0);
    ck_assert_uint_eq(two->waste_bytes, PAGES / 2 * 2876);
}

START_TEST(cells_have_what_they_hold_of_the_pages) {
    put_blocks();
    look(PAGES * PAGE / 1024);
    struct ml_snapshot *made = snapshot();
    check_cells(&made->processes[0]);
    ml_snapshot_free(made);
}
END_TEST

/* They are freed, and it ends: the dump tells of when it held most. */
START_TEST(after_the_end_they_have_what_they_held_when_it_was_largest) {
    put_blocks();
    look(PAGES * PAGE / 1024);
    for (uint32_t i = 0; i < PAGES; i++) {
        builder_free_block(builders[CLIENT], 0, 200, base + (uint64_t)i * PAGE);
    }
    advance(300);
    look(4);
    end_client(CLIENT, 400);
    struct ml_snapshot *made = snapshot();
    check_cells(&made->processes[0]);
    ck_assert_uint_eq(cell_of(&made->processes[0], 1)->own.live_bytes, 0);
    ml_snapshot_free(made);
}
END_TEST

/* Its tables are cut to the largest stacks: their cells have other numbers. */
START_TEST(of_a_client_that_was_cut_nothing_is_told_of_cells) {
    put_blocks();
    look(PAGES * PAGE / 1024);
    clients[CLIENT]->relieved = true;
    struct ml_snapshot *made = snapshot();
    ck_assert(!made->processes[0].cells_were_laid);
    ck_assert_uint_eq(cell_of(&made->processes[0], 1)->resident_private_bytes, 0);
    clients[CLIENT]->relieved = false;
    ml_snapshot_free(made);
}
END_TEST

START_TEST(what_a_view_takes_is_given_back_with_it) {
    put_blocks();
    const uint64_t before = clients[CLIENT]->budget.used_bytes;
    look(PAGES * PAGE / 1024);
    ck_assert_uint_gt(clients[CLIENT]->budget.used_bytes, before);
    ml_client_show_nothing(clients[CLIENT]);
    ck_assert_uint_eq(clients[CLIENT]->budget.used_bytes, before);
}
END_TEST

/* The first one is the latest, the largest and the one to compare with. */
START_TEST(a_view_counts_once_wherever_it_is_kept) {
    put_blocks();
    const uint64_t before = clients[CLIENT]->budget.used_bytes;
    look(4);
    ck_assert_ptr_eq(clients[CLIENT]->view, clients[CLIENT]->dumped_view);
    ck_assert_uint_eq(clients[CLIENT]->budget.used_bytes, before + clients[CLIENT]->view->bytes);
    look(2);
    ck_assert_uint_eq(
        clients[CLIENT]->budget.used_bytes,
        before + clients[CLIENT]->view->bytes + clients[CLIENT]->largest_view->bytes
    );
    ck_assert(ml_client_return_views(clients[CLIENT]));
    ck_assert_uint_eq(clients[CLIENT]->budget.used_bytes, before);
    ml_client_free_returned(clients[CLIENT]);
    ck_assert_uint_eq(clients[CLIENT]->budget.used_bytes, before);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, session_set_up, session_tear_down);
    tcase_add_test(tests, cells_have_what_they_hold_of_the_pages);
    tcase_add_test(tests, after_the_end_they_have_what_they_held_when_it_was_largest);
    tcase_add_test(tests, of_a_client_that_was_cut_nothing_is_told_of_cells);
    tcase_add_test(tests, what_a_view_takes_is_given_back_with_it);
    tcase_add_test(tests, a_view_counts_once_wherever_it_is_kept);
    return run_suite("service/client_memory", tests);
}
