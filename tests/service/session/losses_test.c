/* Losses and late events: only what was lost is missing, and it is reported. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "tests/service/builder_reader.h"
#include "tests/service/session/check.h"
#include "tests/service/session/fixture.h"
#include "tests/suite.h"

START_TEST(a_lost_chunk_costs_its_own_records_and_says_so) {
    add_client(1);
    builder_flush(builders[1], 0);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builders[1]->lanes[0].drops = true;
    builder_flush(builders[1], 0);
    builders[1]->lanes[0].drops = false;
    builder_alloc(builders[1], 0, 20, 0x2000, 50, 1);
    builder_flush(builders[1], 0);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 50);
    ck_assert_uint_eq(figures(1).lost_events, 1);
    ck_assert_uint_eq(figures(1).lost_chunks, 1);
    ck_assert(!figures(1).complete);
}
END_TEST

START_TEST(a_lost_chunk_of_which_all_was_read_costs_no_event_and_says_so) {
    add_client(1);
    builder_flush(builders[1], 0);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    advance(50);
    ck_assert(figures(1).complete);
    builders[1]->lanes[0].drops = true;
    builder_flush(builders[1], 0);
    builders[1]->lanes[0].drops = false;
    builder_alloc(builders[1], 0, 60, 0x2000, 50, 1);
    builder_flush(builders[1], 0);
    advance(100);
    end_client(1, 110);
    ck_assert_uint_eq(figures(1).totals.total_bytes, 150);
    ck_assert_uint_eq(figures(1).lost_events, 0);
    ck_assert_uint_eq(figures(1).accounting.overrun, 0);
    ck_assert(figures(1).accounting.balanced);
    ck_assert(!figures(1).complete);
    ck_assert_ptr_nonnull(strstr(figures(1).trouble, "no event was lost"));
}
END_TEST

/* ... before anything stands behind it, too: what else it held may be missing. */
START_TEST(a_lost_chunk_is_said_before_its_thread_goes_on) {
    add_client(1);
    builder_flush(builders[1], 0);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    advance(50);
    builders[1]->lanes[0].drops = true;
    builder_flush(builders[1], 0);
    /* What is counted as lost stands from the second look on. */
    builder_read_staging(builders[1], clients[1]);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 100);
    ck_assert_uint_eq(figures(1).lost_events, 0);
    ck_assert_uint_eq(figures(1).lost_chunks, 1);
    ck_assert(!figures(1).complete);
    ck_assert_ptr_nonnull(strstr(figures(1).trouble, "no event was lost"));
}
END_TEST

/* ipc/wire/staging.h: `sent` passes a dropped chunk first, what counts it comes behind. A process
 * that is killed between the two has the next chunk in its other slot, ... */
START_TEST(what_stands_behind_a_lost_chunk_is_read_though_nobody_lived_to_count_it) {
    add_client(1);
    builders[1]->header.slots = 2;
    builder_flush(builders[1], 0);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builders[1]->lanes[0].drops = true;
    builder_flush(builders[1], 0);
    builders[1]->lanes[0].header.lost_chunks = 0;
    builder_alloc(builders[1], 0, 60, 0x2000, 50, 1);
    end_client(1, 110);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 50);
    ck_assert_uint_eq(figures(1).accounting.overrun, 1);
    ck_assert_uint_eq(figures(1).accounting.unaccounted, 0);
    ck_assert(figures(1).accounting.balanced);
    ck_assert_uint_eq(figures(1).lost_chunks, 1);
    ck_assert(!figures(1).complete);
}
END_TEST

/* ... or has only one, and nothing behind. */
START_TEST(a_lost_chunk_is_said_though_nobody_lived_to_count_it) {
    add_client(1);
    builder_flush(builders[1], 0);
    builder_node(builders[1], 0, 3, 1);
    const struct ml_staging_lane before = builders[1]->lanes[0].header;
    builders[1]->lanes[0].drops = true;
    builder_flush(builders[1], 0);
    builders[1]->lanes[0].header = before;
    builders[1]->lanes[0].header.sent = before.sent + 1;
    end_client(1, 110);
    ck_assert(figures(1).accounting.balanced);
    ck_assert_uint_eq(figures(1).lost_chunks, 1);
    ck_assert(!figures(1).complete);
}
END_TEST

/* The pipe has it, and its thread was killed before `sent` passed it. */
START_TEST(a_chunk_in_the_pipe_of_a_killed_process_is_not_lost) {
    add_client(1);
    builder_flush(builders[1], 0);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    const struct ml_staging_lane before = builders[1]->lanes[0].header;
    builder_flush(builders[1], 0);
    builders[1]->lanes[0].header = before;
    end_client(1, 110);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 100);
    ck_assert_uint_eq(figures(1).lost_chunks, 0);
    ck_assert(figures(1).complete);
}
END_TEST

/* What the parent held at the fork is not known: neither is what the child began with. */
START_TEST(a_child_of_a_parent_that_has_lost_chunks_is_not_complete) {
    const struct ml_client_setup forked = {
        .id = 2, .parent_id = 1, .pid = 102, .forked = true, .fork_serial = 7};
    const struct ml_client_setup other = {
        .id = 4, .parent_id = 3, .pid = 104, .forked = true, .fork_serial = 7};
    for (uint32_t parent = 1; parent <= 3; parent += 2) {
        add_client(parent);
        builder_flush(builders[parent], 0);
        builder_alloc(builders[parent], 0, 10, 0x1000, 100, 1);
        builders[parent]->lanes[0].drops = parent == 1;
        builder_flush(builders[parent], 0);
        builders[parent]->lanes[0].drops = false;
        builder_timed(builders[parent], 0, ML_EVENT_FORK, 20, 7);
        builder_flush(builders[parent], 0);
    }
    add_with(2, &forked);
    add_with(4, &other);
    advance(100);
    ck_assert_uint_eq(figures(2).inherited_bytes, 0);
    ck_assert(!figures(2).complete);
    ck_assert_uint_eq(figures(4).inherited_bytes, 100);
    ck_assert(figures(4).complete);
}
END_TEST

START_TEST(late_events_are_applied_on_arrival_and_counted) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    advance(50);
    builder_alloc(builders[1], 1, 40, 0x2000, 50, 1);
    builder_flush(builders[1], 1);
    ck_assert_int_eq(read_pipe(1), ML_OK);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 150);
    ck_assert_uint_eq(figures(1).late_events, 1);
    advance(60);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 150);
}
END_TEST

/* The stamp of the event before it: ipc/wire/lease.h. */
START_TEST(an_event_with_the_last_stamp_again_is_not_late) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    advance(50);
    builder_free_block(builders[1], 0, 10, 0x1000);
    builder_alloc(builders[1], 0, 10, 0x3000, 30, 1);
    builder_alloc(builders[1], 1, 55, 0x1000, 7, 1); /* thread 1 was given what thread 0 freed */
    builder_free_block(builders[1], 0, 57, 0x3000);
    advance(60);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 7);
    ck_assert_uint_eq(figures(1).totals.peak_bytes, 100);
    ck_assert_uint_eq(figures(1).late_events, 0);
    ck_assert_uint_eq(figures(1).missed_frees, 0);
    ck_assert_uint_eq(figures(1).unknown_frees, 0);
    ck_assert(ml_session_check(session));
}
END_TEST

/* Process 1 was read up to 50 and says once more what it stamped at 10; what process 2 held ended
 * at 40, and both were never there together. */
START_TEST(an_event_with_the_last_stamp_again_is_of_the_time_after_the_last_look) {
    add_client(1);
    add_client(2);
    builder_alloc(builders[1], 0, 10, 0x1000, 1, 1);
    builder_alloc(builders[2], 0, 20, 0x1000, 1000, 1);
    builder_free_block(builders[2], 0, 40, 0x1000);
    advance(50);
    builder_alloc(builders[1], 0, 10, 0x2000, 1000, 1);
    advance(60);
    ck_assert_uint_eq(figures(1).late_events, 0);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 1001);
}
END_TEST

/* Thread 1 frees a block, and what says so comes only after thread 0 was given the address again
 * and all that was applied. */
static void give_out_twice(void) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 0, 30, 0x1000, 7, 2);
    advance(50);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 7);
    ck_assert_uint_eq(figures(1).missed_frees, 1);
}

START_TEST(a_late_free_never_frees_the_block_that_was_put_there_since) {
    give_out_twice();
    builder_free_block(builders[1], 1, 20, 0x1000);
    builder_flush(builders[1], 1);
    ck_assert_int_eq(read_pipe(1), ML_OK);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 7);
    ck_assert_uint_eq(figures(1).missed_frees, 0);
    ck_assert_uint_eq(figures(1).unknown_frees, 0);
    ck_assert_uint_eq(figures(1).late_events, 1);
    ck_assert(!figures(1).complete);
    builder_free_block(builders[1], 0, 60, 0x1000);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 0);
    ck_assert_uint_eq(figures(1).unknown_frees, 0);
}
END_TEST

START_TEST(a_late_realloc_never_moves_the_block_that_was_put_there_since) {
    give_out_twice();
    builder_timed(builders[1], 1, ML_EVENT_RESIZE, 20, 0x1000);
    builder_timed(builders[1], 1, ML_EVENT_CANCEL, 21, 0);
    builder_flush(builders[1], 1);
    ck_assert_int_eq(read_pipe(1), ML_OK);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 7);
    ck_assert_uint_eq(figures(1).totals.live_blocks, 1);
    ck_assert(ml_session_check(session));
}
END_TEST

/* A block is freed, and its address perhaps given out again, before its alloc is seen. */
static void free_unseen(bool again) {
    add_client(1);
    builder_alloc(builders[1], 0, 3, 0x8000, 100, 1); /* the late one's cell is no new one */
    builder_free_block(builders[1], 0, 4, 0x8000);
    builder_alloc(builders[1], 0, 5, 0x9000, 1, 1);
    builder_free_block(builders[1], 0, 20, 0x1000);
    if (again) {
        builder_alloc(builders[1], 0, 30, 0x1000, 7, 1);
    }
    advance(50);
    ck_assert_uint_eq(figures(1).unknown_frees, 1);
    builder_alloc(builders[1], 1, 10, 0x1000, 100, 1);
    builder_flush(builders[1], 1);
    ck_assert_int_eq(read_pipe(1), ML_OK);
    ck_assert_uint_eq(figures(1).late_events, 1);
    ck_assert_uint_eq(figures(1).unknown_frees, 0);
    ck_assert_uint_eq(figures(1).missed_frees, 0);
    ck_assert_uint_eq(figures(1).totals.total_bytes, again ? 208 : 201);
}

START_TEST(a_late_alloc_never_replaces_the_block_that_was_put_there_since) {
    free_unseen(true);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 8);
    builder_free_block(builders[1], 0, 60, 0x1000);
    advance(100);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 1);
    ck_assert_uint_eq(figures(1).unknown_frees, 0);
    ck_assert(ml_session_check(session));
}
END_TEST

START_TEST(a_late_alloc_that_was_freed_before_it_came_does_not_live) {
    free_unseen(false);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 1);
    /* One free, one alloc: the next late one there has not been freed. */
    builder_alloc(builders[1], 1, 15, 0x1000, 30, 1);
    builder_flush(builders[1], 1);
    ck_assert_int_eq(read_pipe(1), ML_OK);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 31);
    ck_assert(ml_session_check(session));
}
END_TEST

START_TEST(a_busy_lane_holds_the_others_before_its_last_event_for_a_while) {
    add_client(1);
    builder_alloc(builders[1], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 0, 15, 0x4000, 1000, 1);
    builder_alloc(builders[1], 1, 12, 0x2000, 50, 1);
    builder_alloc(builders[1], 1, 30, 0x3000, 25, 1);
    builders[1]->lanes[0].header.published |= ML_PUBLISHED_BUSY;
    advance(25);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 150);
    ck_assert_uint_eq(ml_session_known(session), 14);
    for (int i = 0; i < ML_SESSION_BUSY_ROUNDS; i++) {
        advance(100);
    }
    ck_assert_uint_eq(figures(1).totals.live_bytes, 150);
    advance(101);
    ck_assert_uint_eq(figures(1).totals.live_bytes, 1175);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("session");
    tcase_add_checked_fixture(tcase, session_set_up, session_tear_down);
    tcase_add_test(tcase, a_lost_chunk_costs_its_own_records_and_says_so);
    tcase_add_test(tcase, a_lost_chunk_of_which_all_was_read_costs_no_event_and_says_so);
    tcase_add_test(tcase, a_lost_chunk_is_said_before_its_thread_goes_on);
    tcase_add_test(tcase, what_stands_behind_a_lost_chunk_is_read_though_nobody_lived_to_count_it);
    tcase_add_test(tcase, a_lost_chunk_is_said_though_nobody_lived_to_count_it);
    tcase_add_test(tcase, a_chunk_in_the_pipe_of_a_killed_process_is_not_lost);
    tcase_add_test(tcase, a_child_of_a_parent_that_has_lost_chunks_is_not_complete);
    tcase_add_test(tcase, late_events_are_applied_on_arrival_and_counted);
    tcase_add_test(tcase, an_event_with_the_last_stamp_again_is_not_late);
    tcase_add_test(tcase, an_event_with_the_last_stamp_again_is_of_the_time_after_the_last_look);
    tcase_add_test(tcase, a_late_free_never_frees_the_block_that_was_put_there_since);
    tcase_add_test(tcase, a_late_realloc_never_moves_the_block_that_was_put_there_since);
    tcase_add_test(tcase, a_late_alloc_never_replaces_the_block_that_was_put_there_since);
    tcase_add_test(tcase, a_late_alloc_that_was_freed_before_it_came_does_not_live);
    tcase_add_test(tcase, a_busy_lane_holds_the_others_before_its_last_event_for_a_while);
    return run_suite("service/session_losses", tcase);
}
