/* Profiles one after another: to which one bytes belong, and what remains of one that has ended. */
#include <check.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/service/builder_reader.h"
#include "tests/service/session/check.h"
#include "tests/service/stream_builder.h"
#include "tests/suite.h"

enum { CLIENTS = 2 };
static struct ml_session *session;
static struct ml_client *clients[CLIENTS];
static struct builder *builders[CLIENTS];

/* Client `at`, which begins to be read in that profile. */
static void add_client(uint32_t at, uint32_t profile) {
    const struct ml_client_setup setup = {
        .id = at + 1,
        .pid = 100 + at,
        .sampling_bytes = 1,
        .from_startup = true,
        .profile = profile};
    ck_assert_int_eq(ml_session_add(session, &setup, &clients[at]), ML_OK);
    if (builders[at] == NULL) {
        builders[at] = builder_new();
    }
}

static void put_first_records(uint32_t at) {
    builder_start(builders[at], 100 + at, 0);
    builder_node(builders[at], 0, 1, 0);
}

static void set_up(void) {
    const struct ml_timestamp start = {.ticks = 1};
    session = ml_session_new(&start, 0);
    ck_assert_ptr_nonnull(session);
    memset(clients, 0, sizeof(clients));
    memset(builders, 0, sizeof(builders));
}

static void tear_down(void) {
    for (uint32_t i = 0; i < CLIENTS; i++) {
        builder_free(builders[i]);
    }
    ml_session_free(session);
}

static void advance(uint64_t ticks) {
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (clients[i] != NULL) {
            ck_assert_int_eq(builder_read_pipe(builders[i], clients[i]), ML_OK);
            builder_read_staging(builders[i], clients[i]);
        }
    }
    ck_assert_int_eq(ml_session_advance(session, ticks), ML_OK);
    ck_assert(ml_session_check(session));
}

START_TEST(what_a_former_profile_left_in_pipe_and_staging_is_nobodys) {
    struct builder *builder = builder_new();
    builders[0] = builder;
    put_first_records(0);
    builder_alloc(builder, 0, 10, 0x1000, 100, 1);
    builder_flush(builder, 0);
    builder_alloc(builder, 0, 12, 0x2000, 100, 1);
    builder_alloc(builder, 1, 14, 0x3000, 100, 1);
    builder_alloc(builder, 2, 16, 0x4000, 100, 1);
    builder->lanes[2].drops = true;
    builder_flush(builder, 2);
    /* A thread of the former profile, preempted in the middle of an event for ever. */
    builder->lanes[1].header.published |= ML_PUBLISHED_BUSY;
    builder->header.lost_no_lane = 3;
    builder->header.truncated_stacks = 4;
    builder_begin(builder, 0, 1);
    put_first_records(0);
    builder_alloc(builder, 0, 50, 0x5000, 7, 1);
    builder_flush(builder, 0);
    builder_alloc(builder, 0, 52, 0x6000, 8, 1);
    builder_free_block(builder, 0, 54, 0x1000);
    add_client(0, 1);
    advance(100);
    builder->header.truncated_stacks = 5;
    advance(110);
    const struct ml_client_figures figures = ml_client_figures(clients[0]);
    ck_assert_uint_eq(figures.totals.live_bytes, 15);
    ck_assert_uint_eq(figures.totals.total_blocks, 2);
    ck_assert_uint_eq(figures.unknown_frees, 1);
    ck_assert_uint_eq(figures.events, 3);
    ck_assert_uint_eq(figures.lost_events, 0);
    ck_assert_uint_eq(figures.truncated_stacks, 1);
    ck_assert(figures.complete);
    ck_assert_uint_eq(ml_client_known(clients[0], 105), 105);
}
END_TEST

START_TEST(a_lane_joins_the_profile_when_its_thread_comes_by) {
    add_client(0, 0);
    builders[0]->header.slots = 1;
    put_first_records(0);
    builder_alloc(builders[0], 1, 10, 0x1000, 100, 1);
    advance(20);
    ck_assert_int_eq(ml_client_begin(clients[0], 1), ML_OK);
    advance(30); /* nobody has come by yet */
    ck_assert_uint_eq(ml_client_figures(clients[0]).totals.total_bytes, 0);
    builder_begin(builders[0], 0, 1);
    put_first_records(0);
    builder_alloc(builders[0], 0, 40, 0x2000, 5, 1);
    advance(50);
    builder_begin(builders[0], 1, 1);
    builder_alloc(builders[0], 1, 60, 0x3000, 6, 1);
    builder_flush(builders[0], 1);
    builder_alloc(builders[0], 1, 62, 0x4000, 7, 1);
    advance(70);
    const struct ml_client_figures figures = ml_client_figures(clients[0]);
    ck_assert_uint_eq(figures.totals.live_bytes, 18);
    ck_assert_uint_eq(figures.late_events, 0);
    ck_assert(figures.complete);
}
END_TEST

START_TEST(a_stopped_profile_is_cut_at_its_moment_and_kept) {
    add_client(0, 0);
    put_first_records(0);
    builder_alloc(builders[0], 0, 10, 0x1000, 100, 1);
    advance(20);
    ml_client_stop(clients[0], 30);
    /* Published late by threads that had not heard of it: before the moment, and behind it. */
    builder_alloc(builders[0], 0, 25, 0x2000, 50, 1);
    builder_free_block(builders[0], 0, 35, 0x1000);
    builder_alloc(builders[0], 0, 36, 0x3000, 1000, 1);
    advance(100);
    ck_assert_uint_eq(ml_client_figures(clients[0]).totals.live_bytes, 150);
    ck_assert_uint_eq(ml_client_figures(clients[0]).totals.peak_bytes, 150);
    ck_assert(ml_client_figures(clients[0]).complete);
    /* It holds what nobody knows now: the tree's peak goes on without it. */
    add_client(1, 0);
    put_first_records(1);
    builder_alloc(builders[1], 0, 110, 0x1000, 149, 1);
    advance(120);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 150);
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 149);
    ck_assert_uint_eq(ml_session_left(session).bytes, 150);
}
END_TEST

START_TEST(what_is_applied_already_when_it_is_stopped_stays) {
    add_client(0, 0);
    put_first_records(0);
    builder_alloc(builders[0], 0, 40, 0x1000, 100, 1);
    advance(50);
    ml_client_stop(clients[0], 30);
    builder_alloc(builders[0], 0, 60, 0x2000, 1, 1);
    advance(100);
    ck_assert_uint_eq(ml_client_figures(clients[0]).totals.live_bytes, 100);
}
END_TEST

START_TEST(a_profile_that_begins_anew_takes_its_share_out_of_the_trees_peak) {
    add_client(0, 0);
    add_client(1, 0);
    put_first_records(0);
    put_first_records(1);
    builder_alloc(builders[0], 0, 10, 0x1000, 100, 1);
    builder_alloc(builders[1], 0, 12, 0x1000, 50, 1);
    builder_free_block(builders[0], 0, 14, 0x1000);
    builder_alloc(builders[1], 0, 16, 0x2000, 20, 1);
    advance(20);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 150);
    ck_assert_int_eq(ml_client_begin(clients[0], 1), ML_OK);
    ck_assert(ml_session_check(session));
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 70);
    builder_begin(builders[0], 0, 1);
    put_first_records(0);
    builder_alloc(builders[0], 0, 30, 0x9000, 1, 1);
    advance(40);
    ck_assert_uint_eq(ml_session_totals(session).peak_bytes, 71);
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 71);
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert(!snapshot->processes[0].from_startup);
    ck_assert(snapshot->processes[1].from_startup);
    ml_snapshot_free(snapshot);
}
END_TEST

START_TEST(a_stopped_process_starts_anew_and_leaves_at_its_end) {
    add_client(0, 0);
    put_first_records(0);
    builder_alloc(builders[0], 0, 10, 0x1000, 100, 1);
    advance(20);
    ml_client_stop(clients[0], 20);
    advance(30);
    ck_assert_int_eq(ml_client_begin(clients[0], 7), ML_OK);
    builder_begin(builders[0], 0, 7);
    put_first_records(0);
    builder_alloc(builders[0], 0, 40, 0x1000, 3, 1);
    advance(50);
    ck_assert_uint_eq(ml_client_figures(clients[0]).totals.live_bytes, 3);
    const struct ml_client_end end = {.state = 1, .end = {.ticks = 60}};
    ck_assert_int_eq(ml_client_ended(clients[0], &end), ML_OK);
    ck_assert(ml_session_check(session));
    ck_assert_int_eq(ml_client_begin(clients[0], 8), ML_PEER_STATE);
    ck_assert_uint_eq(ml_client_figures(clients[0]).totals.live_bytes, 3);
    clients[0] = NULL;
}
END_TEST

/* Whoever says that it ends, and goes on, is still among its parent's children. */
START_TEST(a_process_that_has_said_its_end_starts_anew_among_its_parents_children) {
    add_client(0, 0);
    const struct ml_client_setup setup = {
        .id = 2, .parent_id = 1, .pid = 101, .parent_pid = 100, .sampling_bytes = 1};
    ck_assert_int_eq(ml_session_add(session, &setup, &clients[1]), ML_OK);
    builders[1] = builder_new();
    put_first_records(0);
    put_first_records(1);
    builder_timed(builders[1], 0, ML_EVENT_END, 10, ML_END_EXIT);
    advance(20);
    ck_assert_int_eq(ml_client_begin(clients[1], 1), ML_OK);
    builder_begin(builders[1], 0, 1);
    put_first_records(1);
    builder_alloc(builders[1], 0, 30, 0x1000, 3, 1);
    advance(40);
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 3);
    builder_timed(builders[0], 0, ML_EVENT_REAPED, 50, 999); /* another child, never recorded */
    advance(55);
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 3);
    builder_timed(builders[0], 0, ML_EVENT_REAPED, 57, 101);
    advance(60);
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 0);
    ck_assert_uint_eq(ml_session_left(session).bytes, 3);
}
END_TEST

/* Client 0 holds 100 bytes at node 2 below node 1, 5 at node 3; node 4 has given back all of its.
 */
static void hold_for_two_seconds(void) {
    add_client(0, 0);
    put_first_records(0);
    ml_session_note_time(session, UINT64_C(1000000000), true);
    builder_node(builders[0], 0, 2, 1);
    builder_node(builders[0], 0, 3, 0);
    builder_node(builders[0], 0, 4, 1);
    builder_alloc(builders[0], 0, 10, 0x1000, 100, 2);
    builder_alloc(builders[0], 0, 11, 0x2000, 5, 3);
    builder_alloc(builders[0], 0, 12, 0x3000, 7, 4);
    builder_free_block(builders[0], 0, 13, 0x3000);
    advance(100);
    ml_session_note_time(session, UINT64_C(3000000000), true);
}

static struct ml_snapshot *snapshot_of(enum memlog_service_dump_content content) {
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_begin_snapshot(session, NULL, 0, &snapshot), ML_OK);
    snapshot->order.content = content;
    ck_assert_int_eq(ml_session_copy_tables(session, snapshot, NULL), ML_OK);
    return snapshot;
}

START_TEST(a_snapshot_of_a_part_is_that_part_of_the_whole) {
    hold_for_two_seconds();
    struct ml_snapshot *whole = snapshot_of(MEMLOG_SERVICE_DUMP_CONTENT_EVERYTHING);
    struct ml_snapshot *profile = snapshot_of(MEMLOG_SERVICE_DUMP_CONTENT_PROFILE);
    struct ml_snapshot *series = snapshot_of(MEMLOG_SERVICE_DUMP_CONTENT_SERIES);
    const struct ml_snapshot_process *all = &whole->processes[0];
    ck_assert_uint_eq(all->nodes_count, 4);
    ck_assert_uint_eq(all->cells_count, 3);
    ck_assert_uint_eq(all->series_count, 4); /* what came and went has one, too */
    ck_assert_uint_gt(whole->series.points_count, 0);

    const struct ml_snapshot_process *cells = &profile->processes[0];
    ck_assert_uint_eq(cells->series_count, 0);
    ck_assert_uint_eq(cells->nodes_count, 4);
    ck_assert_uint_eq(cells->cells_count, 3);
    ck_assert_mem_eq(cells->cells, all->cells, 3 * sizeof(*all->cells));

    const struct ml_snapshot_process *named = &series->processes[0];
    ck_assert_uint_eq(series->series.points_count, whole->series.points_count);
    ck_assert_uint_eq(named->cells_count, 0);
    ck_assert_uint_eq(named->series_count, 4);
    ck_assert_uint_eq(named->nodes_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_mem_eq(&named->nodes[i], &all->nodes[i], sizeof(all->nodes[i]));
        ck_assert_uint_eq(named->series[i].node, all->series[i].node);
        ck_assert_uint_eq(named->series[i].points_count, all->series[i].points_count);
    }
    ck_assert_mem_eq(&named->totals, &all->totals, sizeof(all->totals));
    ml_snapshot_free(whole);
    ml_snapshot_free(profile);
    ml_snapshot_free(series);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("session_profile");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, what_a_former_profile_left_in_pipe_and_staging_is_nobodys);
    tcase_add_test(cases, a_lane_joins_the_profile_when_its_thread_comes_by);
    tcase_add_test(cases, a_stopped_profile_is_cut_at_its_moment_and_kept);
    tcase_add_test(cases, what_is_applied_already_when_it_is_stopped_stays);
    tcase_add_test(cases, a_profile_that_begins_anew_takes_its_share_out_of_the_trees_peak);
    tcase_add_test(cases, a_stopped_process_starts_anew_and_leaves_at_its_end);
    tcase_add_test(cases, a_process_that_has_said_its_end_starts_anew_among_its_parents_children);
    tcase_add_test(cases, a_snapshot_of_a_part_is_that_part_of_the_whole);
    return run_suite("session_profile", cases);
}
