#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "service/session.h"
#include "tests/service/builder_reader.h"
#include "tests/service/stream_builder.h"

/* Up to four clients, ids from 1, each with its builder. */
enum { CLIENTS_MAX = 4 };
static struct ml_session *session;
static struct ml_client *clients[CLIENTS_MAX + 1];
static struct builder *builders[CLIENTS_MAX + 1];

static void set_up(void) {
    const struct ml_moment start = {.ticks = 1};
    session = ml_session_new(&start, 0);
    ck_assert_ptr_nonnull(session);
    memset(clients, 0, sizeof(clients));
    memset(builders, 0, sizeof(builders));
}

static void tear_down(void) {
    for (int i = 1; i <= CLIENTS_MAX; i++) {
        builder_free(builders[i]);
    }
    ml_session_free(session);
}

static void add_with(uint32_t id, const struct ml_client_setup *setup) {
    ck_assert_int_eq(ml_session_add(session, setup, &clients[id]), ML_OK);
    builders[id] = builder_new();
    builder_start(builders[id], setup->pid, 0);
    builder_node(builders[id], 0, 1, 0);
    builder_node(builders[id], 0, 2, 1);
}

static void add_client(uint32_t id) {
    const struct ml_client_setup setup = {.id = id, .pid = 100 + id, .sampling_bytes = 1};
    add_with(id, &setup);
}

static enum ml_status read_pipe(uint32_t id) {
    return builder_read_pipe(builders[id], clients[id]);
}

static void advance(uint64_t ticks) {
    for (uint32_t i = 1; i <= CLIENTS_MAX; i++) {
        if (clients[i] != NULL && ml_client_status(clients[i]) == ML_OK) {
            (void)read_pipe(i);
            if (builders[i]->header.magic != 0) {
                builder_read_staging(builders[i], clients[i]);
            }
            ck_assert(ml_client_settled(clients[i]));
        }
    }
    ck_assert_int_eq(ml_session_advance(session, ticks), ML_OK);
    ck_assert(ml_session_check(session));
}

static void end_client(uint32_t id, uint64_t ticks) {
    const struct ml_client_end end = {.state = 1, .end = {.ticks = ticks}};
    (void)read_pipe(id);
    builder_read_staging(builders[id], clients[id]);
    ck_assert_int_eq(ml_client_ended(clients[id], &end), ML_OK);
    builders[id]->header.magic = 0;
}

static struct ml_client_figures figures(uint32_t id) {
    return ml_client_figures(clients[id]);
}

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
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 2000);
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
    ck_assert_uint_eq(figures(1).totals.total_bytes, again ? 108 : 101);
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
    ck_assert(!figures(1).complete);
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
    const struct ml_moment start = {.ticks = 1};
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
    Suite *suite = suite_create("service/session");
    TCase *tcase = tcase_create("session");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
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
    tcase_add_test(tcase, a_lost_chunk_costs_its_own_records_and_says_so);
    tcase_add_test(tcase, a_lost_chunk_of_which_all_was_read_costs_no_event_and_says_so);
    tcase_add_test(tcase, a_child_of_a_parent_that_has_lost_chunks_is_not_complete);
    tcase_add_test(tcase, late_events_are_applied_on_arrival_and_counted);
    tcase_add_test(tcase, a_late_free_never_frees_the_block_that_was_put_there_since);
    tcase_add_test(tcase, a_late_realloc_never_moves_the_block_that_was_put_there_since);
    tcase_add_test(tcase, a_late_alloc_never_replaces_the_block_that_was_put_there_since);
    tcase_add_test(tcase, a_late_alloc_that_was_freed_before_it_came_does_not_live);
    tcase_add_test(tcase, a_busy_lane_holds_the_others_before_its_last_event_for_a_while);
    tcase_add_test(tcase, temporaries_are_blocks_freed_by_the_next_event_of_their_thread);
    tcase_add_test(tcase, a_stack_that_was_never_defined_costs_the_stack_not_the_bytes);
    tcase_add_test(tcase, an_address_given_out_twice_was_freed_unseen);
    tcase_add_test(tcase, a_client_that_breaks_the_contract_is_lost_alone_with_its_figures);
    tcase_add_test(tcase, sums_that_no_process_can_have_lose_the_client);
    tcase_add_test(tcase, without_memory_the_client_is_lost_and_marked);
    tcase_add_test(tcase, everything_is_applied_when_the_last_process_has_ended);
    tcase_add_test(tcase, ids_are_given_once);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
