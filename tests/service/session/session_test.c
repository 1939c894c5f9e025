#include <check.h>
#include <stdlib.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/service/session/check.h"
#include "tests/service/session/fixture.h"
#include "tests/suite.h"

START_TEST(a_block_lives_and_dies_and_leaves_its_peak) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 0, 20, 0x2000, 50, 2);
    builder_free_block(builders[1], 0, 30, 0x1000);
    advance(100);
    const struct ml_totals totals = figures(1).totals;
    ck_assert_uint_eq(totals.live_bytes, 50);
    ck_assert_uint_eq(totals.live_blocks, 1);
    ck_assert_uint_eq(totals.peak_bytes, 150);
    ck_assert_uint_eq(totals.peak_blocks, 2);
    ck_assert_uint_eq(totals.total_bytes, 150);
    ck_assert_uint_eq(totals.total_blocks, 2);
    ck_assert_uint_eq(figures(1).events, 3);
    ck_assert(figures(1).complete);
}
END_TEST

START_TEST(nothing_counts_twice_between_staging_and_pipe) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    advance(15);
    builder_alloc(builders[1], 0, 20, 0x2000, 50, 1);
    advance(25);
    builder_flush(builders[1], 0);
    builder_alloc(builders[1], 0, 30, 0x3000, 7, 1);
    advance(35);
    advance(36);
    builder_flush(builders[1], 0);
    advance(40);
    ck_assert_uint_eq(figures(1).totals.total_bytes, 157);
    ck_assert_uint_eq(figures(1).totals.live_blocks, 3);
    ck_assert_uint_eq(figures(1).events, 3);
    ck_assert_uint_eq(figures(1).late_events, 0);
}
END_TEST

START_TEST(blocks_handed_between_threads_follow_their_stamps) {
    add_client(1);
    /* The freeing thread's chunk comes first. */
    builder_free_block(builders[1], 1, 11, 0x1000);
    builder_alloc(builders[1], 1, 14, 0x1000, 30, 1);
    builder_flush(builders[1], 1);
    builder_alloc(builders[1], 0, 10, 0x1000, 10, 1);
    builder_alloc(builders[1], 2, 12, 0x1000, 20, 1);
    builder_free_block(builders[1], 0, 13, 0x1000);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 30);
    ck_assert_uint_eq(figures(1).totals.peak_bytes, 30);
    ck_assert_uint_eq(figures(1).totals.total_bytes, 60);
    ck_assert_uint_eq(figures(1).unknown_frees, 0);
    ck_assert_uint_eq(figures(1).missed_frees, 0);
}
END_TEST

START_TEST(a_realloc_frees_at_its_stamp_and_a_failed_one_gives_back) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_timed(builders[1], 0, ML_EVENT_RESIZE, 20, 0x1000);
    builder_alloc(builders[1], 0, 30, 0x2000, 150, 2);
    builder_timed(builders[1], 0, ML_EVENT_RESIZE, 40, 0x2000);
    builder_timed(builders[1], 0, ML_EVENT_CANCEL, 50, 0);
    advance(100);
    const struct ml_totals totals = figures(1).totals;
    ck_assert_uint_eq(totals.live_bytes, 150);
    ck_assert_uint_eq(totals.live_blocks, 1);
    ck_assert_uint_eq(totals.peak_bytes, 150);
    ck_assert_uint_eq(totals.total_bytes, 250);
    ck_assert_uint_eq(totals.total_blocks, 2);
}
END_TEST

/* A block that needs more than its slot comes back where no room is left for such. */
START_TEST(a_failed_realloc_puts_a_large_block_back) {
    const uint64_t size = UINT64_C(5) << 30;
    add_client(1);
    builder_alloc(builders[1], 0, 1, 0x800, size, 1);
    for (uint64_t i = 1; i <= 64; i++) {
        builder_alloc(builders[1], 0, 10 * i, 0x1000 * i, size, 1);
        builder_timed(builders[1], 0, ML_EVENT_RESIZE, 10 * i + 1, 0x1000 * i);
        builder_alloc(builders[1], 1, 10 * i + 2, 0x1000000 + 0x1000 * i, size, 1);
        builder_timed(builders[1], 0, ML_EVENT_CANCEL, 10 * i + 3, 0);
        advance(10 * i + 5);
        ck_assert_uint_eq(figures(1).totals.live_bytes, (2 * i + 1) * size);
    }
    ck_assert(ml_session_check(session));
}
END_TEST

START_TEST(two_processes_that_peak_one_after_the_other_are_not_their_sum) {
    add_client(1);
    add_client(2);
    builder_alloc(builders[1], 0, 10, 0x1000, 1000, 1);
    builder_free_block(builders[1], 0, 20, 0x1000);
    builder_alloc(builders[2], 0, 30, 0x1000, 1000, 1);
    builder_free_block(builders[2], 0, 40, 0x1000);
    advance(100);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 1000);
    builder_alloc(builders[1], 0, 110, 0x1000, 600, 1);
    builder_alloc(builders[2], 0, 120, 0x1000, 600, 1);
    builder_free_block(builders[1], 0, 130, 0x1000);
    advance(200);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 1200);
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert_uint_eq(snapshot->tree_peak_ticks, 120);
    for (int i = 0; i < 2; i++) {
        uint64_t share = 0;
        for (uint32_t c = 0; c < snapshot->processes[i].cells_count; c++) {
            share += snapshot->processes[i].cells[c].tree_peak_bytes;
        }
        ck_assert_uint_eq(share, 600);
        ck_assert_uint_eq(snapshot->processes[i].held_at_tree_peak_bytes, 600);
        ck_assert_uint_eq(snapshot->processes[i].held_at_tree_peak_blocks, 1);
    }
    ml_snapshot_free(snapshot);
}
END_TEST

START_TEST(a_process_leaves_at_its_end_not_when_it_is_noticed) {
    add_client(1);
    add_client(2);
    builder_alloc(builders[1], 0, 10, 0x1000, 1000, 1);
    builder_timed(builders[1], 0, ML_EVENT_END, 20, ML_END_EXIT);
    builder_alloc(builders[2], 0, 30, 0x1000, 1000, 1);
    advance(100);
    end_client(1, 90);
    advance(200);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 1000);
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 1000);
    ck_assert_uint_eq(ml_session_left(session).bytes, 1000);
    ck_assert_uint_eq(ml_session_left(session).blocks, 1);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 1000);
}
END_TEST

START_TEST(a_killed_process_leaves_when_its_parent_has_waited_for_it) {
    const struct ml_client_setup child = {.id = 2, .parent_id = 1, .pid = 102};
    add_client(1);
    add_with(2, &child);
    builder_alloc(builders[2], 0, 10, 0x1000, 1000, 1);
    builder_timed(builders[1], 0, ML_EVENT_REAPED, 20, 102);
    builder_alloc(builders[1], 0, 30, 0x1000, 900, 1);
    advance(100);
    end_client(2, 90);
    advance(200);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 1000);
}
END_TEST

START_TEST(a_failed_exec_voids_the_end_before_it) {
    add_client(1);
    add_client(2);
    builder_alloc(builders[1], 0, 10, 0x1000, 1000, 1);
    builder_timed(builders[1], 0, ML_EVENT_END, 20, ML_END_EXEC);
    builder_alloc(builders[1], 0, 30, 0x2000, 1, 1);
    builder_alloc(builders[2], 0, 40, 0x1000, 1000, 1);
    advance(100);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 2001);
}
END_TEST

START_TEST(a_new_process_of_the_same_pid_has_replaced_the_old_one) {
    const struct ml_client_setup next = {.id = 2, .pid = 101, .start = {.ticks = 20}};
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 1000, 1);
    add_with(2, &next);
    builder_alloc(builders[2], 0, 30, 0x1000, 1000, 1);
    advance(100);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 1000);
}
END_TEST

START_TEST(a_child_shows_what_it_inherited_whoever_comes_first) {
    const struct ml_client_setup early = {
        .id = 2, .parent_id = 1, .pid = 102, .forked = true, .fork_serial = 7};
    const struct ml_client_setup late = {
        .id = 3, .parent_id = 1, .pid = 103, .forked = true, .fork_serial = 8};
    const struct ml_client_setup unnamed = {
        .id = 4, .parent_id = 1, .pid = 104, .forked = true, .start = {.ticks = 50}};
    add_client(1);
    add_with(2, &early);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_timed(builders[1], 0, ML_EVENT_FORK, 20, 7);
    builder_alloc(builders[1], 0, 30, 0x2000, 11, 1);
    builder_timed(builders[1], 0, ML_EVENT_FORK, 40, 8);
    builder_free_block(builders[1], 0, 45, 0x1000);
    builder_free_block(builders[2], 0, 50, 0x1000);
    advance(100);
    add_with(3, &late);
    add_with(4, &unnamed);
    advance(110);
    ck_assert_uint_eq(figures(2).inherited_bytes, 100);
    ck_assert_uint_eq(figures(2).inherited_blocks, 1);
    ck_assert_uint_eq(figures(2).unknown_frees, 1);
    ck_assert_uint_eq(figures(2).totals.live_bytes, 0);
    ck_assert_uint_eq(figures(3).inherited_bytes, 111);
    ck_assert_uint_eq(figures(3).inherited_blocks, 2);
    ck_assert_uint_eq(figures(4).inherited_bytes, 11);
    ck_assert_uint_eq(figures(1).inherited_bytes, 0);
}
END_TEST

START_TEST(temporaries_are_blocks_freed_by_the_next_event_of_their_thread) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 1, 11, 0x2000, 100, 1);
    builder_free_block(builders[1], 0, 12, 0x1000);
    builder_alloc(builders[1], 0, 13, 0x3000, 100, 1);
    builder_free_block(builders[1], 0, 14, 0x2000);
    builder_free_block(builders[1], 0, 15, 0x3000);
    advance(100);
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert_uint_eq(snapshot->processes[0].cells_count, 1);
    ck_assert_uint_eq(snapshot->processes[0].cells[0].temporary_blocks, 1);
    ck_assert_uint_eq(snapshot->processes[0].cells[0].size_class, 7);
    ml_snapshot_free(snapshot);
}
END_TEST

START_TEST(a_stack_that_was_never_defined_costs_the_stack_not_the_bytes) {
    add_client(1);
    builder_node(builders[1], 0, 9, 8);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 9);
    builder_alloc(builders[1], 0, 20, 0x2000, 10, 7);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 110);
    ck_assert_uint_eq(figures(1).broken_stacks, 1);
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
    const struct ml_snapshot_process *process = &snapshot->processes[0];
    ck_assert_uint_eq(process->nodes_count, 3);
    ck_assert_uint_eq(process->nodes[0].id, 7);
    ck_assert_uint_eq(process->nodes[0].frame, ML_FRAME_BROKEN);
    ck_assert_uint_eq(process->nodes[1].id, 8);
    ck_assert_uint_eq(process->nodes[1].frame, ML_FRAME_BROKEN);
    ck_assert_uint_eq(process->nodes[2].id, 9);
    ck_assert_uint_eq(process->nodes[2].parent, 8);
    ml_snapshot_free(snapshot);
}
END_TEST

START_TEST(an_address_given_out_twice_was_freed_unseen) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 0, 20, 0x1000, 10, 2);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 10);
    ck_assert_uint_eq(figures(1).totals.live_blocks, 1);
    ck_assert_uint_eq(figures(1).missed_frees, 1);
    ck_assert(figures(1).complete); /* no event was lost: something frees past memlog */
    ck_assert_ptr_nonnull(strstr(figures(1).coverage.unseen, "1 address was given out again"));
}
END_TEST

START_TEST(a_reading_has_the_heap_of_its_moment) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 0, 30, 0x2000, 10, 2);
    ml_client_read(clients[1], 20, 5000, 4096);
    ck_assert(!figures(1).coverage.was_read); /* its moment has not come */
    ck_assert_uint_eq(figures(1).coverage.private_bytes, 0);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 110);
    ck_assert_uint_eq(figures(1).coverage.heap_bytes, 100);
    ck_assert_uint_eq(figures(1).coverage.private_bytes, 5000);
    ck_assert_uint_eq(figures(1).coverage.files_bytes, 4096);
    ml_client_read(clients[1], 20, 6000, 0); /* told again, with other news */
    ck_assert_uint_eq(figures(1).coverage.private_bytes, 5000);
}
END_TEST

START_TEST(a_reading_of_nothing_is_a_reading) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    ml_client_read(clients[1], 20, 0, 0);
    advance(100);
    ck_assert(figures(1).coverage.was_read);
    ck_assert_uint_eq(figures(1).coverage.heap_bytes, 100);
    ck_assert_uint_eq(figures(1).coverage.private_bytes, 0);
}
END_TEST

START_TEST(a_reading_of_a_moment_that_is_over_has_the_heap_of_now) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    advance(100);
    ml_client_read(clients[1], 5, 5000, 1024);
    ck_assert_uint_eq(figures(1).coverage.heap_bytes, 100);
    ck_assert_uint_eq(figures(1).coverage.private_bytes, 5000);
    ck_assert_uint_eq(figures(1).coverage.files_bytes, 1024);
}
END_TEST

START_TEST(a_client_that_breaks_the_contract_is_lost_alone_with_its_figures) {
    const uint8_t zeros[64] = {0};
    add_client(1);
    add_client(2);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[2], 0, 10, 0x1000, 100, 1);
    advance(50);
    ck_assert_int_eq(ml_client_feed(clients[1], zeros, sizeof(zeros)), ML_PEER_RANGE);
    ck_assert_int_eq(ml_client_feed(clients[1], zeros, sizeof(zeros)), ML_PEER_RANGE);
    builder_alloc(builders[2], 0, 60, 0x2000, 100, 1);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 100);
    ck_assert_uint_eq(figures(2).totals.live_bytes, 200);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 300);
    ck_assert(!figures(1).complete);
    ck_assert_str_ne(figures(1).trouble, "");
}
END_TEST

START_TEST(sums_that_no_process_can_have_lose_the_client) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, ML_SIZE_MAX_BYTES - 1, 1);
    builder_alloc(builders[1], 0, 20, 0x2000, 1, 1);
    advance(100);
    ck_assert_int_eq(ml_client_status(clients[1]), ML_PEER_LIMIT);
    ck_assert_uint_eq(figures(1).totals.live_bytes, ML_SIZE_MAX_BYTES - 1);
    ck_assert(ml_session_check(session));
}
END_TEST

START_TEST(without_memory_the_client_is_lost_and_marked) {
    const struct ml_timestamp start = {.ticks = 1};
    ml_session_free(session);
    session = ml_session_new(&start, 256 * 1024);
    add_client(1);
    for (uint64_t i = 1; i < 20000; i++) {
        builder_alloc(builders[1], 0, 10 + i, i * 16, 16, 1);
    }
    (void)read_pipe(1);
    ck_assert_int_eq(ml_session_advance(session, 100000), ML_OK);
    ck_assert_int_eq(ml_client_status(clients[1]), ML_ENV_MEMORY);
    ck_assert(!figures(1).complete);
    ck_assert(ml_session_check(session));
}
END_TEST

START_TEST(everything_is_applied_when_the_last_process_has_ended) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 0, 5000, 0x2000, 100, 1);
    end_client(1, 100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 200);
    ck_assert_int_eq(ml_client_feed(clients[1], (const uint8_t *)"", 1), ML_PEER_STATE);
    ck_assert(ml_session_check(session));
}
END_TEST

START_TEST(ids_are_given_once) {
    const struct ml_client_setup setup = {.id = 1};
    struct ml_client *client = NULL;
    add_client(1);
    ck_assert_int_eq(ml_session_add(session, &setup, &client), ML_PEER_STATE);
    ck_assert_ptr_eq(ml_session_find(session, 1), clients[1]);
    ck_assert_ptr_null(ml_session_find(session, 1 + 4096));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("session");
    tcase_add_checked_fixture(tcase, session_set_up, session_tear_down);
    tcase_add_test(tcase, a_failed_realloc_puts_a_large_block_back);
    tcase_add_test(tcase, a_block_lives_and_dies_and_leaves_its_peak);
    tcase_add_test(tcase, nothing_counts_twice_between_staging_and_pipe);
    tcase_add_test(tcase, blocks_handed_between_threads_follow_their_stamps);
    tcase_add_test(tcase, a_realloc_frees_at_its_stamp_and_a_failed_one_gives_back);
    tcase_add_test(tcase, two_processes_that_peak_one_after_the_other_are_not_their_sum);
    tcase_add_test(tcase, a_process_leaves_at_its_end_not_when_it_is_noticed);
    tcase_add_test(tcase, a_killed_process_leaves_when_its_parent_has_waited_for_it);
    tcase_add_test(tcase, a_failed_exec_voids_the_end_before_it);
    tcase_add_test(tcase, a_new_process_of_the_same_pid_has_replaced_the_old_one);
    tcase_add_test(tcase, a_child_shows_what_it_inherited_whoever_comes_first);
    tcase_add_test(tcase, temporaries_are_blocks_freed_by_the_next_event_of_their_thread);
    tcase_add_test(tcase, a_stack_that_was_never_defined_costs_the_stack_not_the_bytes);
    tcase_add_test(tcase, an_address_given_out_twice_was_freed_unseen);
    tcase_add_test(tcase, a_reading_has_the_heap_of_its_moment);
    tcase_add_test(tcase, a_reading_of_nothing_is_a_reading);
    tcase_add_test(tcase, a_reading_of_a_moment_that_is_over_has_the_heap_of_now);
    tcase_add_test(tcase, a_client_that_breaks_the_contract_is_lost_alone_with_its_figures);
    tcase_add_test(tcase, sums_that_no_process_can_have_lose_the_client);
    tcase_add_test(tcase, without_memory_the_client_is_lost_and_marked);
    tcase_add_test(tcase, everything_is_applied_when_the_last_process_has_ended);
    tcase_add_test(tcase, ids_are_given_once);
    return run_suite("service/session", tcase);
}
