/* Slices that are applied client by client on several cores, against the same slices merged event
 * by event. They are long, are cut into pieces, and have processes that come and go. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#include "service/session/client.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/workers/workers.h"
#include "tests/service/session/check.h"
#include "tests/service/stream_builder.h"
#include "tests/suite.h"

enum { CLIENTS = 4, NODES = 8, PLACES = 5000, EVENTS = 700000, FIRST_PID = 100 };

/* Two of each: what is tested, and what it should be. */
enum { APART, MERGED, WAYS };

static struct ml_session *sessions[WAYS];
static struct ml_client *clients[WAYS][CLIENTS];
static struct builder *builders[CLIENTS];
static struct ml_workers *workers;
static bool live[CLIENTS][PLACES];
static uint64_t random_state;
static uint64_t now;

static uint32_t pick(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

/* The first one is the others' parent. */
static void set_up(void) {
    const struct ml_timestamp start = {.ticks = 1};
    workers = ml_workers_new(3);
    now = 10;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        builders[i] = builder_new();
        builder_start(builders[i], FIRST_PID + i, 0);
        for (uint32_t node = 1; node < NODES; node++) {
            builder_node(builders[i], 0, node, node - 1);
        }
    }
    for (int way = 0; way < WAYS; way++) {
        sessions[way] = ml_session_new(&start, 0);
        ck_assert_ptr_nonnull(sessions[way]);
        ml_session_workers(
            sessions[way], way == APART ? workers : NULL, way == APART ? 0 : UINT64_MAX
        );
        for (uint32_t i = 0; i < CLIENTS; i++) {
            const struct ml_client_setup setup = {
                .id = i + 1, .parent_id = i == 0 ? 0 : 1, .pid = FIRST_PID + i};
            ck_assert_int_eq(ml_session_add(sessions[way], &setup, &clients[way][i]), ML_OK);
        }
    }
}

static void tear_down(void) {
    for (uint32_t i = 0; i < CLIENTS; i++) {
        builder_free(builders[i]);
    }
    for (int way = 0; way < WAYS; way++) {
        ml_session_free(sessions[way]);
    }
    ml_workers_free(workers);
}

/* One event; more allocations than frees in some stretches, fewer in others. */
static void write_event(uint32_t i, uint32_t alone_until) {
    const uint32_t index = i < alone_until ? 0 : pick(CLIENTS);
    const uint32_t lane = pick(BUILDER_LANES);
    const uint32_t place = pick(PLACES);
    const uint64_t address = 0x10000 + (uint64_t)place * 4096;
    const bool growing = i / 20000 % 3 != 2;
    now += pick(3);
    if (live[index][place]) {
        if (!growing || pick(3) == 0) {
            builder_free_block(builders[index], lane, now, address);
            live[index][place] = false;
        }
        return;
    }
    if (growing || pick(3) == 0) {
        builder_alloc(builders[index], lane, now, address, pick(4000), 1 + pick(NODES - 1));
        live[index][place] = true;
    }
}

/* A process execs, or not after all; a child was waited for; another one goes. */
static void write_turn(uint32_t i) {
    const uint32_t lane = pick(BUILDER_LANES);
    now += pick(3);
    switch (i % 3) {
    case 0:
        builder_timed(builders[pick(CLIENTS)], lane, ML_EVENT_END, now, ML_END_EXEC);
        break;
    case 1:
        builder_timed(builders[0], lane, ML_EVENT_REAPED, now, FIRST_PID + 1);
        break;
    default:
        builder_timed(builders[0], lane, ML_EVENT_REAPED, now, 5);
        break;
    }
}

static void read_all(int way) {
    for (uint32_t i = 0; i < CLIENTS; i++) {
        struct ml_staging_lane lanes[BUILDER_LANES];
        struct ml_client_want want;
        size_t wanted = 0;
        const struct builder *builder = builders[i];
        ck_assert_int_eq(
            ml_client_feed(
                clients[way][i],
                builder->pipe + builder->pipe_read,
                builder->pipe_count - builder->pipe_read
            ),
            ML_OK
        );
        for (int k = 0; k < BUILDER_LANES; k++) {
            lanes[k] = builder->lanes[k].header;
        }
        ck_assert_int_eq(
            ml_client_lanes(
                clients[way][i], &builder->header, lanes, BUILDER_LANES, &want, 1, &wanted
            ),
            ML_OK
        );
        ck_assert(ml_client_settled(clients[way][i]));
    }
}

static void compare(void) {
    struct ml_snapshot *is = NULL;
    struct ml_snapshot *should = NULL;
    ck_assert(ml_session_check(sessions[APART]));
    ck_assert_int_eq(ml_session_snapshot(sessions[APART], NULL, 0, &is), ML_OK);
    ck_assert_int_eq(ml_session_snapshot(sessions[MERGED], NULL, 0, &should), ML_OK);
    ck_assert_uint_eq(is->tree.live_bytes, should->tree.live_bytes);
    ck_assert_uint_eq(is->tree.peak_bytes, should->tree.peak_bytes);
    ck_assert_uint_eq(is->tree.peak_blocks, should->tree.peak_blocks);
    ck_assert_uint_eq(is->tree_peak_ticks, should->tree_peak_ticks);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        const struct ml_snapshot_process *a = &is->processes[i];
        const struct ml_snapshot_process *b = &should->processes[i];
        ck_assert_uint_eq(a->cells_count, b->cells_count);
        ck_assert_uint_eq(a->peak_ticks, b->peak_ticks);
        ck_assert_uint_eq(a->late_events, 0);
        for (uint32_t k = 0; k < a->cells_count; k++) {
            ck_assert_uint_eq(a->cells[k].node, b->cells[k].node);
            ck_assert_uint_eq(a->cells[k].own.live_bytes, b->cells[k].own.live_bytes);
            ck_assert_uint_eq(a->cells[k].own.peak_bytes, b->cells[k].own.peak_bytes);
            ck_assert_uint_eq(a->cells[k].own.peak_blocks, b->cells[k].own.peak_blocks);
            ck_assert_uint_eq(a->cells[k].tree_peak_bytes, b->cells[k].tree_peak_bytes);
            ck_assert_uint_eq(a->cells[k].tree_peak_blocks, b->cells[k].tree_peak_blocks);
        }
    }
    ml_snapshot_free(is);
    ml_snapshot_free(should);
}

static const struct {
    uint32_t turns_every; /* 0: nobody comes or goes */
    uint32_t alone_until; /* only the first process has events before */
    uint64_t advances;
} runs[] = {
    {0, 0, 3},
    {40000, 0, 3},
    {3000, 0, 3},        /* more of them than a slice is cut for */
    {0, 0, 1},           /* in several pieces */
    {680000, 600000, 1}, /* several pieces of one process alone, then a turn */
};
enum { RUNS_COUNT = sizeof(runs) / sizeof(runs[0]), SEEDS = 2 };

START_TEST(long_slices_end_as_if_they_were_merged) {
    const uint32_t every = runs[_i % RUNS_COUNT].turns_every;
    const uint64_t advances = runs[_i % RUNS_COUNT].advances;
    random_state = (uint64_t)_i + 1;
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (every != 0 && i % every == every - 1) {
            write_turn(i / every);
        } else {
            write_event(i, runs[_i % RUNS_COUNT].alone_until);
        }
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        for (uint32_t lane = 0; lane < BUILDER_LANES; lane++) {
            builder_flush(builders[i], lane);
        }
    }
    for (int way = 0; way < WAYS; way++) {
        read_all(way);
    }
    for (uint64_t i = 1; i <= advances; i++) {
        for (int way = 0; way < WAYS; way++) {
            ck_assert_int_eq(ml_session_advance(sessions[way], now * i / advances), ML_OK);
        }
        compare();
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("slice");
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, long_slices_end_as_if_they_were_merged, 0, RUNS_COUNT * SEEDS);
    return run_suite("service/slice", tcase);
}
