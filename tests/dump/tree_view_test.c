#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "service/snapshot/host_view.h"
#include "tests/dump/synthetic.h"
#include "tests/suite.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/model/trace_reader.h"

/* What processes were made of at the tree's peak, from the service's snapshot into the analyzer. */

enum { PROCESSES = 3, NODES = 10, CELLS = 4, SECOND_NS = 1000000000 };

static struct ml_arena arena;
static struct ml_snapshot *snapshot;
static struct ml_profile profile;

/* A mapping of so much private memory, read at that second. */
static struct ml_host_view *view_of(uint64_t private_kb, uint64_t second) {
    struct memlog_service_memory_region regions[] = {
        {.start = 0x10000,
         .end = 0x10000 + private_kb * 1024,
         .name = ml_string_of("[heap]"),
         .size_kb = private_kb,
         .resident_kb = private_kb,
         .private_dirty_kb = private_kb}};
    const struct memlog_service_show_process_request message = {
        .view = {
            .boottime_ns = second * SECOND_NS,
            .regions = {regions, 1},
            .status = {.known = true, .page_tables_kb = private_kb, .kernel_stacks_kb = 16},
            .trouble = ml_string_of("it was let go")}};
    struct ml_host_view *view = ml_host_view_of(&message);
    ck_assert_ptr_nonnull(view);
    return view;
}

/* The first has another reading since, the second none, the third did not run then. */
static void set_up(void) {
    const struct synthetic_options options = {
        .processes_count = PROCESSES, .nodes_count = NODES, .cells_count = CELLS};
    arena = (struct ml_arena){0};
    profile = (struct ml_profile){0};
    snapshot = synthetic_snapshot(&arena, &options);
    struct ml_snapshot_process *first = &snapshot->processes[0];
    static struct ml_snapshot_holding holding;
    holding = (struct ml_snapshot_holding
    ){.kind = 0, .node = first->nodes[NODES - 1].id, .mapped_bytes = 4096, .private_bytes = 1024};
    snapshot->order.now.boottime_ns = (uint64_t)100 * SECOND_NS;
    snapshot->order.now.realtime_ns = (uint64_t)1000 * SECOND_NS;
    first->view = view_of(1, 90);
    first->tree_view = view_of(60, 50);
    first->tree_holdings = &holding;
    first->tree_holdings_count = 1;
    first->tree_cells_were_laid = true;
    first->cells[0].tree_private_bytes = 7;
    first->cells[0].resident_private_bytes = 3;
    snapshot->processes[1].view = view_of(20, 51);
    snapshot->processes[1].tree_view = ml_host_view_keep(snapshot->processes[1].view);
    snapshot->processes[2].view = view_of(70, 20);
    snapshot->tree_views_dropped = 4;
    FILE *file = synthetic_dump(snapshot);
    ck_assert_int_eq(ml_trace_read(file, 0, &profile), ML_OK);
    fclose(file);
    ck_assert(!profile.damaged);
    ck_assert_uint_eq(profile.processes_count, PROCESSES);
}

static void tear_down(void) {
    for (uint32_t i = 0; i < PROCESSES; i++) {
        ml_host_view_free(snapshot->processes[i].view);
        ml_host_view_free(snapshot->processes[i].tree_view);
    }
    ml_profile_fini(&profile);
    ml_arena_fini(&arena);
}

START_TEST(each_process_has_what_it_was_made_of_then) {
    struct ml_profile_process then;
    ck_assert_uint_eq(profile.tree_views_dropped, 4);
    ck_assert(ml_profile_at_tree_peak(&profile.processes[0], &then));
    ck_assert(!profile.processes[0].partial);
    ck_assert_uint_eq(then.regions_count, 1);
    ck_assert_uint_eq(then.regions[0].private_dirty_kb, 60);
    ck_assert_str_eq(then.regions[0].name.bytes, "[heap]");
    ck_assert_uint_eq(then.status.page_tables_bytes, 60 * 1024);
    ck_assert_uint_eq(then.status.kernel_stacks_bytes, 16 * 1024);
    ck_assert_str_eq(then.memory_trouble.bytes, "it was let go");
    ck_assert(!then.cells_were_laid); /* the cells are of the dump */
    ck_assert_uint_eq(then.holdings_count, 1);
    ck_assert_uint_eq(then.holdings[0].node, snapshot->processes[0].nodes[NODES - 1].id);
    ck_assert_uint_eq(then.holdings[0].private_bytes, 1024);
    ck_assert(ml_profile_at_tree_peak(&profile.processes[1], &then));
    ck_assert_ptr_null(profile.processes[1].at_tree_peak);
    ck_assert_uint_eq(then.regions[0].private_dirty_kb, 20);
    ck_assert(!ml_profile_at_tree_peak(&profile.processes[2], &then));
    ck_assert_uint_eq(profile.processes[0].regions[0].private_dirty_kb, 1);
}
END_TEST

START_TEST(the_moment_is_when_the_first_was_read) {
    ck_assert_uint_eq(ml_profile_tree_peak_ns(&profile), (uint64_t)950 * SECOND_NS);
}
END_TEST

START_TEST(back_at_that_moment_whoever_ran_then_is_shown) {
    ck_assert(ml_profile_move_to_tree_peak(&profile));
    ck_assert(profile.is_at_tree_peak);
    ck_assert_uint_eq(profile.processes[0].regions[0].private_dirty_kb, 60);
    ck_assert(profile.processes[0].cells_were_laid);
    ck_assert_uint_eq(profile.processes[0].cells[0].resident_private_bytes, 7);
    ck_assert_uint_eq(profile.processes[1].regions[0].private_dirty_kb, 20);
    ck_assert(ml_profile_is_shown(&profile, &profile.processes[0]));
    ck_assert(ml_profile_is_shown(&profile, &profile.processes[1]));
    ck_assert(!ml_profile_is_shown(&profile, &profile.processes[2]));
    ck_assert_uint_eq(ml_profile_tree_peak_ns(&profile), (uint64_t)950 * SECOND_NS);
}
END_TEST

START_TEST(a_dump_without_it_stays_as_it_is) {
    for (size_t i = 0; i < PROCESSES; i++) {
        profile.processes[i].was_at_tree_peak = false;
    }
    ck_assert(!ml_profile_move_to_tree_peak(&profile));
    ck_assert_uint_eq(profile.processes[0].regions[0].private_dirty_kb, 1);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_process_has_what_it_was_made_of_then);
    tcase_add_test(tests, the_moment_is_when_the_first_was_read);
    tcase_add_test(tests, back_at_that_moment_whoever_ran_then_is_shown);
    tcase_add_test(tests, a_dump_without_it_stays_as_it_is);
    return run_suite("dump/tree_view", tests);
}
