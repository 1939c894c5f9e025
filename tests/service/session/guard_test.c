/* What a session gives up when its memory runs short, and that it gives up nothing more. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/guard.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/snapshot/host_view.h"
#include "service/snapshot/snapshot.h"
#include "tests/service/session/check.h"
#include "tests/service/stream_builder.h"
#include "tests/service/describe.h"
#include "tests/suite.h"

enum { CLIENTS = 3, SIZE_BYTES = 40, PATIENCE = 1000, MIB = 1 << 20 };

static struct ml_session *session;
static struct ml_client *clients[CLIENTS];
static struct builder *builders[CLIENTS];
static uint64_t now_ticks;
static uint64_t blocks[CLIENTS]; /* allocated by each */

static void set_up_with(uint64_t max_bytes, uint64_t quota_bytes) {
    const struct ml_timestamp start = {.ticks = 1};
    session = ml_session_new(&start, max_bytes);
    ck_assert_ptr_nonnull(session);
    ml_session_quota(session, quota_bytes);
    ml_session_patience(session, PATIENCE);
    now_ticks = 10;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct ml_client_setup setup = {
            .id = i + 1, .pid = 100 + i, .sampling_bytes = 1, .from_startup = true};
        ck_assert_int_eq(ml_session_add(session, &setup, &clients[i]), ML_OK);
        builders[i] = builder_new();
        builder_start(builders[i], 100 + i, 0);
        builder_node(builders[i], 0, 1, 0);
        blocks[i] = 0;
    }
}

static void set_up(void) {
    set_up_with(0, 0);
}

static void tear_down(void) {
    for (uint32_t i = 0; i < CLIENTS; i++) {
        builder_free(builders[i]);
    }
    ml_session_free(session);
}

static void advance(void) {
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct builder *builder = builders[i];
        struct ml_staging_lane lanes[BUILDER_LANES];
        struct ml_client_want wants[BUILDER_LANES];
        size_t count = 0;
        builder_flush(builder, 0);
        for (uint32_t lane = 0; lane < BUILDER_LANES; lane++) {
            lanes[lane] = builder->lanes[lane].header;
        }
        const size_t count_bytes = builder->pipe_count - builder->pipe_read;
        (void)!ml_client_feed(clients[i], builder->pipe + builder->pipe_read, count_bytes);
        builder->pipe_read = builder->pipe_count;
        (void)!ml_client_lanes(
            clients[i], &builder->header, lanes, BUILDER_LANES, wants, BUILDER_LANES, &count
        );
    }
    ck_assert_int_eq(ml_session_advance(session, now_ticks), ML_OK);
    ck_assert(ml_session_check(session));
}

static void allocate(uint32_t at, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        builder_alloc(builders[at], 0, ++now_ticks, 0x10000 + 64 * blocks[at]++, SIZE_BYTES, 1);
    }
}

/* Set a limit of which so much is taken. */
static void limit_at(uint64_t percent) {
    ml_session_limit(session, ml_session_memory(session).used_bytes * 100 / percent);
}

/* The guard's next event; false: there is none. */
static bool hear(struct ml_guard_event *out_event) {
    return ml_session_guard(session, out_event);
}

enum { REGIONS = 30000 };

/* A view of so many mappings: some 5 MB. */
static void show(struct ml_client *client) {
    static struct memlog_service_memory_region regions[REGIONS];
    for (uint64_t i = 0; i < REGIONS; i++) {
        regions[i] = (struct memlog_service_memory_region
        ){.start = (i + 1) << 16, .end = ((i + 1) << 16) + 4096, .size_kb = 4};
    }
    const struct memlog_service_show_process_request message = {
        .view = {.id = 1, .regions = {.items = regions, .count = REGIONS}}};
    struct ml_host_view *view = ml_host_view_of(&message);
    ck_assert_ptr_nonnull(view);
    ml_client_show(client, view);
}

START_TEST(views_are_given_back_before_anything_of_a_profile_is) {
    struct ml_guard_event event;
    allocate(0, 200000);
    advance();
    const uint64_t before_bytes = ml_session_memory(session).used_bytes;
    show(clients[0]);
    const uint64_t view_bytes = ml_session_memory(session).used_bytes - before_bytes;
    ck_assert_uint_gt(view_bytes, 2 * MIB);
    limit_at(85);
    (void)hear(&event);
    ck_assert_uint_eq(ml_session_memory(session).used_bytes, before_bytes);
}
END_TEST

START_TEST(of_a_view_without_room_all_but_the_mappings_is_kept) {
    tear_down();
    set_up_with(0, MIB);
    show(clients[0]); /* which has 5 MB */
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_begin_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert_ptr_nonnull(snapshot->processes[0].view);
    ck_assert_uint_eq(snapshot->processes[0].view->message->view.regions.count, 0);
    ck_assert_uint_gt(snapshot->processes[0].view->message->view.trouble.count_bytes, 0);
    ml_snapshot_free(snapshot);
}
END_TEST

START_TEST(a_quota_that_views_fill_is_the_heaps_where_it_needs_it) {
    struct ml_guard_event event;
    tear_down();
    set_up_with(0, 16 * MIB);
    for (int i = 0; i < 5; i++) {
        show(clients[0]); /* some find no room */
        allocate(0, 40000);
        advance();
        ck_assert(!hear(&event));
    }
    ck_assert_uint_eq(blocks[0], 200000);
    const struct ml_client_figures figures = ml_client_figures(clients[0]);
    ck_assert_uint_eq(figures.totals.live_blocks, 200000);
}
END_TEST

START_TEST(the_largest_is_sampled_first_and_step_by_step) {
    struct ml_guard_event event;
    ck_assert(!hear(&event));
    allocate(0, 200000);
    allocate(1, 1000);
    advance();
    limit_at(85);
    ck_assert(hear(&event));
    ck_assert_int_eq(event.step, ML_GUARD_COARSER);
    ck_assert_uint_eq(event.client, 1);
    ck_assert_uint_eq(event.sampling_bytes, ML_GUARD_SAMPLING_FIRST_BYTES);
    ck_assert(!hear(&event)); /* it must show first */
    now_ticks += (uint64_t)PATIENCE * ML_SESSION_PATIENCES;
    advance();
    limit_at(85);
    ck_assert(hear(&event));
    ck_assert_uint_eq(event.sampling_bytes, ML_GUARD_SAMPLING_FIRST_BYTES * ML_GUARD_SAMPLING_STEP);
    uint64_t last = 0;
    for (int i = 0; i < 20; i++) {
        now_ticks += (uint64_t)PATIENCE * ML_SESSION_PATIENCES;
        advance();
        limit_at(85);
        last = hear(&event) ? event.sampling_bytes : last;
    }
    ck_assert_uint_eq(last, ML_GUARD_SAMPLING_LAST_BYTES);
    ck_assert(!hear(&event));
    char text[ML_TROUBLE_MAX_BYTES];
    ml_session_guard_text(session, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "processes sampled: 1, kept as totals: 0"));
    ck_assert(ml_client_figures(clients[0]).complete);
}
END_TEST

/* The host may hang. */
START_TEST(an_answer_is_not_waited_for_for_ever) {
    struct ml_guard_event event;
    allocate(0, 200000);
    advance();
    advance(); /* its queue is given back */
    limit_at(98);
    ck_assert(!ml_client_full(clients[0]));
    ck_assert(hear(&event));
    ck_assert(ml_client_full(clients[0])); /* and its pipe is not read meanwhile */
    ck_assert(!hear(&event));
    now_ticks += (uint64_t)PATIENCE * ML_GUARD_HOLD_PATIENCES;
    advance();
    ck_assert(!ml_client_full(clients[0]));
    ck_assert(hear(&event));
    ck_assert_int_eq(event.step, ML_GUARD_DROPPED);
}
END_TEST

enum { PIPE_BYTES = MIB, LEAST_BYTES = 4 };

/* The most that a pipe holds, between the question and the answer. */
static void send_a_pipe(uint32_t at) {
    for (uint64_t left = PIPE_BYTES / LEAST_BYTES; left > 0;) {
        const uint64_t part = ml_client_full_events(clients[at]);
        allocate(at, (uint32_t)(part < left ? part : left));
        left -= part < left ? part : left;
        advance();
    }
}

/* A client that only allocates, each time as much as is fed before the next look, comes to be
 * sampled before anything is lost, and what its pipe holds then still fits. */
START_TEST(what_is_under_way_when_it_is_asked_still_fits) {
    for (uint64_t limit_mib = 24; limit_mib <= 128; limit_mib += 8) {
        struct ml_guard_event event;
        tear_down();
        set_up_with(limit_mib * MIB, 0);
        ml_client_pipe(clients[0], PIPE_BYTES);
        while (!hear(&event)) {
            ck_assert_uint_lt(blocks[0], limit_mib * MIB / 16);
            allocate(0, (uint32_t)ml_client_full_events(clients[0]));
            advance();
        }
        ck_assert_int_eq(event.step, ML_GUARD_COARSER);
        const uint64_t used_bytes = ml_session_memory(session).used_bytes;
        ck_assert_uint_ge(used_bytes, limit_mib * MIB / 100 * ML_GUARD_COARSER_FROM_PERCENT);
        ml_session_sampled(session, 1);
        send_a_pipe(0);
        while (hear(&event)) { /* by its ticks the second is over */
            ck_assert_int_eq(event.step, ML_GUARD_COARSER);
            ml_session_sampled(session, 1);
        }
        ck_assert_uint_eq(ml_client_figures(clients[0]).totals.live_blocks, blocks[0]);
        ck_assert(ml_client_figures(clients[0]).complete);
    }
}
END_TEST

/* However late the service is: no more waits in its queues than a part of what is left. */
START_TEST(a_client_is_full_by_what_memory_is_left) {
    tear_down();
    set_up_with(8 * MIB, 0);
    const uint64_t most = ml_client_full_events(clients[0]);
    ck_assert_uint_gt(most, 10000);
    ck_assert_uint_lt(most, 8 * MIB / ML_SESSION_QUEUE_PART / 24);
    ck_assert_uint_eq(ml_client_part_bytes(clients[0]), most * ML_SESSION_EVENT_LEAST_BYTES);
    allocate(1, 100000); /* what others take is left to nobody */
    advance();
    ck_assert_uint_lt(ml_client_full_events(clients[0]), most * 3 / 4);
    ml_session_limit(session, 1);
    ck_assert_uint_eq(ml_client_full_events(clients[0]), 0);
    ck_assert(!ml_client_full(clients[0])); /* a frame at a time goes on */
    ck_assert_uint_eq(ml_client_part_bytes(clients[0]), ML_FRAME_MAX_BYTES);
    tear_down();
    set_up_with(0, 0);
    ck_assert_uint_eq(ml_client_full_events(clients[0]), ML_SESSION_QUEUE_FULL_EVENTS);
}
END_TEST

START_TEST(nobody_pays_while_one_that_has_ended_gives_back_more) {
    struct ml_guard_event event;
    allocate(0, 200000);
    allocate(1, 1000);
    advance();
    const struct ml_client_end end = {.state = 1, .end = {.ticks = now_ticks + 100}};
    ck_assert_int_eq(ml_client_ended(clients[0], &end), ML_OK);
    limit_at(98);
    ck_assert(!hear(&event));
    now_ticks += 200;
    advance();
    limit_at(98);
    ck_assert(hear(&event));
    ck_assert_int_eq(event.step, ML_GUARD_COARSER);
    ck_assert_uint_eq(event.client, 2);
}
END_TEST

START_TEST(then_its_live_blocks_go_and_its_totals_stay_exact) {
    struct ml_guard_event event;
    allocate(0, 200000);
    allocate(1, 1000);
    advance();
    advance(); /* their queues are given back */
    const struct ml_client_figures before = ml_client_figures(clients[0]);
    const uint64_t blocks_bytes = ml_session_memory(session).blocks_bytes;
    limit_at(98);
    ck_assert(hear(&event));
    ck_assert_int_eq(event.step, ML_GUARD_COARSER); /* not even then at once */
    for (int i = 0; i < 3; i++) {
        advance();
        ck_assert(!hear(&event)); /* the host has not said that it has */
    }
    ml_session_sampled(session, 1);
    ck_assert(hear(&event));
    ck_assert_int_eq(event.step, ML_GUARD_DROPPED);
    ck_assert_uint_eq(event.client, 1);
    ck_assert_uint_lt(ml_session_memory(session).blocks_bytes, blocks_bytes / 50);
    ck_assert(ml_session_check(session));
    ml_session_limit(session, 0);
    for (uint32_t i = 0; i < 500; i++) {
        builder_free_block(builders[0], 0, ++now_ticks, 0x10000 + 64 * (uint64_t)i);
        builder_free_block(builders[1], 0, ++now_ticks, 0x10000 + 64 * (uint64_t)i);
    }
    allocate(0, 300);
    advance();
    const struct ml_client_figures large = ml_client_figures(clients[0]);
    ck_assert_uint_eq(large.totals.live_bytes, before.totals.live_bytes);
    ck_assert_uint_eq(large.totals.peak_bytes, before.totals.peak_bytes);
    ck_assert_uint_eq(large.totals.total_blocks, 200300);
    ck_assert_uint_eq(large.totals.total_bytes, 200300 * SIZE_BYTES);
    ck_assert_uint_eq(large.unknown_frees, 0);
    ck_assert_uint_eq(large.events, 200800);
    ck_assert(!large.complete);
    ck_assert_str_eq(large.trouble, ML_GUARD_DROPPED_TROUBLE);
    const struct ml_client_figures small = ml_client_figures(clients[1]);
    ck_assert_uint_eq(small.totals.live_blocks, 500);
    ck_assert(small.complete);
    ck_assert(!hear(&event)); /* told once */
    /* A new profile is whole again. */
    ck_assert_int_eq(ml_client_begin(clients[0], 1), ML_OK);
    ck_assert_str_eq(ml_client_figures(clients[0]).trouble, "");
}
END_TEST

/* Clients of a session of this bound, each with this quota. */
static void set_up_quota(uint64_t max_bytes, uint64_t quota_bytes) {
    tear_down();
    set_up_with(max_bytes, quota_bytes);
}

START_TEST(whoever_is_over_its_quota_of_blocks_pays_alone) {
    struct ml_guard_event event;
    set_up_quota(0, MIB);
    allocate(1, 1000);
    for (int i = 0; i < 20; i++) {
        allocate(0, 5000);
        advance();
    }
    ck_assert(hear(&event));
    ck_assert_int_eq(event.step, ML_GUARD_DROPPED);
    ck_assert_uint_eq(event.client, 1);
    ck_assert(event.quota);
    ck_assert_uint_eq(event.max_bytes, MIB);
    ck_assert(!hear(&event));
    const struct ml_client_figures large = ml_client_figures(clients[0]);
    ck_assert_int_eq(ml_client_status(clients[0]), ML_OK);
    ck_assert_uint_eq(large.totals.total_blocks, 100000);
    ck_assert_uint_lt(large.totals.live_blocks, 100000);
    ck_assert(!large.complete);
    ck_assert_ptr_nonnull(strstr(large.trouble, "over its quota"));
    ck_assert_ptr_nonnull(strstr(large.trouble, "1 MiB (--client-memory)"));
    ck_assert_ptr_nonnull(strstr(large.trouble, "what is live is as of then"));
    ck_assert(ml_client_figures(clients[1]).complete);
    char text[ML_TROUBLE_MAX_BYTES];
    ml_session_guard_text(session, text, sizeof(text));
    ck_assert_str_eq(text, "processes over their quota of memory in it: 1");
    /* A new profile is whole again. */
    ck_assert_int_eq(ml_client_begin(clients[0], 1), ML_OK);
    ck_assert_str_eq(ml_client_figures(clients[0]).trouble, "");
    ml_session_guard_text(session, text, sizeof(text));
    ck_assert_str_eq(text, "");
}
END_TEST

/* Stack nodes cannot be replaced by totals: the client is lost, and the others do not notice. */
static void define_nodes(uint32_t at, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        builder_node(builders[at], 0, first + i, first + i - 1);
    }
}

START_TEST(whoever_is_over_its_quota_of_stacks_is_lost_alone) {
    struct ml_guard_event event;
    for (int by_default = 0; by_default < 2; by_default++) {
        const uint64_t quota_bytes =
            by_default ? (uint64_t)8 * MIB / 100 * ML_GUARD_CLIENT_PERCENT : MIB;
        set_up_quota(8 * MIB, by_default ? 0 : quota_bytes);
        allocate(1, 1000);
        advance();
        const uint64_t others_bytes = ml_session_memory(session).used_bytes;
        for (uint32_t i = 0; i < 200 && ml_client_status(clients[0]) == ML_OK; i++) {
            define_nodes(0, 2 + i * 5000, 5000);
            advance();
            while (hear(&event)) {
                ck_assert_uint_eq(event.client, 1);
            }
        }
        ck_assert_int_eq(ml_client_status(clients[0]), ML_ENV_MEMORY);
        /* What it had comes back, but for its lanes' buffers. */
        ck_assert_uint_le(ml_session_memory(session).used_bytes, others_bytes + MIB / 4);
        const struct ml_client_figures large = ml_client_figures(clients[0]);
        ck_assert(!large.complete);
        ck_assert_ptr_nonnull(strstr(large.trouble, "over its quota"));
        ck_assert_ptr_nonnull(strstr(large.trouble, "recording it stopped"));
        ck_assert_str_eq(ml_client_loss(clients[0]), large.trouble);
        ck_assert_ptr_null(ml_client_loss(clients[1]));
        for (int i = 0; i < 3; i++) {
            allocate(1, 100);
            allocate(2, 100);
            now_ticks += (uint64_t)PATIENCE * ML_SESSION_PATIENCES;
            advance();
            ck_assert(!hear(&event));
        }
        ck_assert_uint_eq(ml_client_figures(clients[1]).totals.live_blocks, 1300);
        ck_assert(ml_client_figures(clients[1]).complete);
        ck_assert(ml_client_figures(clients[2]).complete);
    }
}
END_TEST

/* A stack of its own for each block: the later ones are the larger ones. */
static void grow_stacks(uint32_t at, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; i++) {
        builder_node(builders[at], 0, 2 + i, 1);
        builder_alloc(
            builders[at], 0, ++now_ticks, 0x100000 + 0x100000 * (uint64_t)i, i + 1, 2 + i
        );
    }
}

static struct ml_snapshot *snapshot_of_first(void) {
    const uint32_t id = 1;
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, &id, 1, &snapshot), ML_OK);
    ck_assert_uint_eq(snapshot->processes_count, 1);
    return snapshot;
}

static const struct ml_snapshot_node *
node_of(const struct ml_snapshot_process *process, uint32_t id) {
    for (uint32_t i = 0; i < process->nodes_count; i++) {
        if (process->nodes[i].id == id) {
            return &process->nodes[i];
        }
    }
    ck_abort_msg("no node %u", id);
    return NULL;
}

/* Its sums stay to the byte, its largest stacks stay apart, the others are told as one. */
START_TEST(the_largest_stacks_of_a_lost_one_stay) {
    struct ml_guard_event event;
    set_up_quota(0, 2 * MIB);
    allocate(1, 1000);
    uint32_t stacks = 0;
    for (; stacks < 100000 && ml_client_status(clients[0]) == ML_OK; stacks += 100) {
        grow_stacks(0, stacks, 100);
        advance();
        while (hear(&event)) {
        }
    }
    ck_assert_int_eq(ml_client_status(clients[0]), ML_ENV_MEMORY);
    ck_assert_uint_le(ml_session_memory(session).used_bytes, MIB);
    struct ml_snapshot *snapshot = snapshot_of_first();
    const struct ml_snapshot_process *process = &snapshot->processes[0];
    struct ml_totals sum = {0};
    uint64_t others_blocks = 0;
    uint32_t apart = 0;
    uint64_t tree_bytes = 0;
    for (uint32_t i = 0; i < process->cells_count; i++) {
        const struct ml_snapshot_cell *cell = &process->cells[i];
        const struct ml_snapshot_node *node = node_of(process, cell->node);
        sum.total_bytes += cell->own.total_bytes;
        sum.live_bytes += cell->own.live_bytes;
        sum.peak_bytes += cell->own.peak_bytes;
        tree_bytes += cell->tree_peak_bytes;
        if (node->frame == ML_FRAME_SCOPE) {
            ck_assert_str_eq(
                process->strings[node->string].data,
                "(stacks that memlog-service had no memory to keep)"
            );
            others_blocks += cell->own.total_blocks;
        } else {
            /* One block, whose frame builder_node gave an address by its id. */
            ck_assert_uint_eq(cell->own.total_blocks, 1);
            ck_assert_uint_ne(node->parent, 0);
            apart++;
        }
    }
    ck_assert_uint_eq(apart, 256);
    ck_assert_uint_eq(others_blocks + apart, process->totals.total_blocks);
    ck_assert_uint_gt(others_blocks, 256);
    ck_assert_uint_eq(sum.total_bytes, process->totals.total_bytes);
    ck_assert_uint_eq(sum.live_bytes, process->totals.live_bytes);
    ck_assert_uint_eq(sum.peak_bytes, process->totals.peak_bytes);
    ck_assert_uint_eq(tree_bytes + 1000 * SIZE_BYTES, ml_session_totals(session).peak_bytes);
    ck_assert(!process->complete);
    ml_snapshot_free(snapshot);
    /* It ends, and others go on: nothing of it is counted twice, or not at all. */
    const struct ml_client_end end = {.state = 1, .end = {.ticks = ++now_ticks}};
    ck_assert_int_eq(ml_client_ended(clients[0], &end), ML_OK);
    allocate(1, 100);
    now_ticks += (uint64_t)PATIENCE * ML_SESSION_PATIENCES;
    advance();
    ck_assert_uint_eq(ml_session_totals(session).live_bytes, 1100 * SIZE_BYTES);
    ck_assert_uint_eq(ml_session_left(session).bytes, sum.live_bytes);
    ck_assert_uint_eq(
        ml_session_totals(session).peak_bytes, tree_bytes + (uint64_t)1000 * SIZE_BYTES
    );
    ck_assert(ml_client_figures(clients[1]).complete);
}
END_TEST

/* The system refuses before any limit is near, or the limit is too low for one client alone. */
START_TEST(whoever_finds_no_memory_keeps_totals_and_goes_on) {
    struct ml_guard_event event;
    allocate(0, 20000);
    allocate(1, 1000);
    advance();
    ml_session_limit(session, ml_session_memory(session).used_bytes + MIB);
    for (int i = 0; i < 20; i++) {
        allocate(0, 5000);
        builder_free_block(builders[0], 0, ++now_ticks, 0x10000);
        advance();
    }
    const struct ml_client_figures large = ml_client_figures(clients[0]);
    ck_assert_int_eq(ml_client_status(clients[0]), ML_OK);
    ck_assert_uint_eq(large.totals.total_blocks, 120000);
    ck_assert_uint_lt(large.totals.live_blocks, 120000);
    ck_assert(!large.complete);
    bool told = false;
    while (hear(&event)) {
        told = told || (event.step == ML_GUARD_DROPPED && event.client == 1);
    }
    ck_assert(told);
    ck_assert(ml_client_figures(clients[1]).complete);
}
END_TEST

START_TEST(ended_processes_are_folded_before_anybody_pays) {
    struct ml_guard_event event;
    allocate(0, 100000);
    for (uint32_t i = 1; i < CLIENTS; i++) {
        allocate(i, 10);
        describe(clients[i], "same", "", "");
    }
    advance();
    for (uint32_t i = 1; i < CLIENTS; i++) {
        const struct ml_client_end end = {.state = 1, .end = {.ticks = ++now_ticks}};
        ck_assert_int_eq(ml_client_ended(clients[i], &end), ML_OK);
        builder_free(builders[i]);
        builders[i] = NULL;
    }
    ml_session_keep(session, 100);
    limit_at(60);
    ck_assert(!hear(&event));
    ck_assert_int_eq(ml_session_advance(session, now_ticks), ML_OK);
    now_ticks += (uint64_t)PATIENCE * (ML_SESSION_PATIENCES + 1);
    builder_flush(builders[0], 0);
    ck_assert_int_eq(ml_session_advance(session, now_ticks), ML_OK);
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert_uint_eq(snapshot->processes_count, 2);
    ck_assert_uint_eq(snapshot->tree.total_blocks, 100020);
    ml_snapshot_free(snapshot);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("guard");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120); /* under sanitizers on a busy machine */
    tcase_add_test(tcase, views_are_given_back_before_anything_of_a_profile_is);
    tcase_add_test(tcase, of_a_view_without_room_all_but_the_mappings_is_kept);
    tcase_add_test(tcase, a_quota_that_views_fill_is_the_heaps_where_it_needs_it);
    tcase_add_test(tcase, the_largest_is_sampled_first_and_step_by_step);
    tcase_add_test(tcase, an_answer_is_not_waited_for_for_ever);
    tcase_add_test(tcase, what_is_under_way_when_it_is_asked_still_fits);
    tcase_add_test(tcase, a_client_is_full_by_what_memory_is_left);
    tcase_add_test(tcase, nobody_pays_while_one_that_has_ended_gives_back_more);
    tcase_add_test(tcase, then_its_live_blocks_go_and_its_totals_stay_exact);
    tcase_add_test(tcase, whoever_finds_no_memory_keeps_totals_and_goes_on);
    tcase_add_test(tcase, whoever_is_over_its_quota_of_blocks_pays_alone);
    tcase_add_test(tcase, whoever_is_over_its_quota_of_stacks_is_lost_alone);
    tcase_add_test(tcase, the_largest_stacks_of_a_lost_one_stay);
    tcase_add_test(tcase, ended_processes_are_folded_before_anybody_pays);
    return run_suite("service/guard", tcase);
}
