/* runner: no second chance */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/workers/workers.h"
#include "tests/service/session/check.h"
#include "tests/service/session/model.h"
#include "tests/service/session/model_compare.h"
#include "tests/service/session/racer.h"
#include "tests/suite.h"

/* Processes whose threads stop between any two stores, whose lane headers are read word by word
 * meanwhile, and whose chunks get lost, against the model, to the byte. One test is one seed's
 * whole run. */

enum { ADDRESSES = 40, STEPS = 6000, NODES = 9, STILL_ROUNDS = 8, WORKERS = 3 };

struct process {
    struct ml_client *client;
    struct racer *racer;
    bool resizing[RACER_LANES];
    uint32_t still[RACER_LANES]; /* rounds in which it was in the middle of something */
    uint64_t serial;
    uint32_t parent; /* index + 1 */
    bool ended, reaped;
};

static struct ml_session *session;
static struct ml_workers *workers; /* NULL: one thread does everything */
static struct model model;
static struct process processes[MODEL_CLIENTS];
static uint32_t count;

static void add_process(uint32_t parent_plus_1, uint32_t drop_percent) {
    struct process *process = &processes[count];
    memset(process, 0, sizeof(*process));
    struct ml_client_setup setup = {
        .id = count + 1,
        .parent_id = parent_plus_1,
        .pid = MODEL_FIRST_PID + count,
        .start = {.ticks = racer_clock},
    };
    ck_assert_int_eq(ml_session_add(session, &setup, &process->client), ML_OK);
    const uint32_t index = model_add_client(&model);
    ck_assert_uint_eq(index, count);
    process->parent = parent_plus_1;
    process->racer = racer_new(&model, index, 1 + racer_pick(2) * racer_pick(RACER_SLOTS));
    process->racer->chunk_bytes = 30 + racer_pick(200);
    const struct ml_event start = {
        .kind = ML_EVENT_START,
        .start = {.version = 1, .pid = setup.pid, .sampling_bytes = 1, .page_bytes = 4096},
    };
    racer_define(process->racer, &start);
    for (uint32_t id = 1; id < NODES; id++) {
        const struct ml_event node = {
            .kind = ML_EVENT_NODE,
            .node = {.id = id, .parent = racer_pick(id), .address = 0x400000 + 16 * (uint64_t)id},
        };
        racer_define(process->racer, &node);
    }
    racer_flush(process->racer, 0);
    while (racer_step(process->racer, 0)) {
    }
    process->racer->drop_percent = drop_percent;
    count++;
}

/* ---- the programs */

static struct ml_event block_event(enum ml_event_kind kind) {
    struct ml_event event = {.kind = kind};
    event.block.address = 0x10000 + (uint64_t)racer_pick(ADDRESSES) * 24;
    event.block.heap = racer_pick(8) == 0;
    if (kind == ML_EVENT_ALLOC) {
        event.block.size_bytes = racer_pick(5) == 0 ? racer_pick(2) : racer_pick(4000);
        event.block.node = racer_pick(NODES);
        event.block.weight_bytes = event.block.size_bytes;
        event.block.weight_blocks = 1;
        if (racer_pick(6) == 0) {
            event.block.marks = ML_BLOCK_SAMPLED;
            event.block.weight_bytes += racer_pick(50000);
            event.block.weight_blocks += racer_pick(50);
        }
    } else {
        event.block.marks = (uint8_t
        )((racer_pick(8) == 0 ? ML_BLOCK_SKIPPED : 0) | (racer_pick(8) == 0 ? ML_BLOCK_UNSURE : 0));
    }
    return event;
}

static struct ml_event something(struct process *process, uint32_t lane) {
    const uint32_t what = racer_pick(100);
    struct ml_event event = {.kind = ML_EVENT_NONE};
    if (process->resizing[lane]) {
        process->resizing[lane] = false;
        if (racer_pick(2) == 0) {
            event.kind = ML_EVENT_CANCEL;
            return event;
        }
        return block_event(ML_EVENT_ALLOC);
    }
    if (what == 0) {
        event.kind = ML_EVENT_FORK;
        event.fork_serial = ++process->serial;
        return event;
    }
    if (what == 1) {
        event.kind = ML_EVENT_END;
        event.end_kind = racer_pick(8) == 0 ? ML_END_EXIT : ML_END_EXEC;
        return event;
    }
    if (what < 15) {
        process->resizing[lane] = true;
        return block_event(ML_EVENT_RESIZE);
    }
    return block_event(what < 45 ? ML_EVENT_FREE : ML_EVENT_ALLOC);
}

/* One store of one thread. */
static void act(struct process *process, uint32_t lane) {
    racer_clock += racer_pick(3) == 0;
    if (racer_step(process->racer, lane)) {
        return;
    }
    if (racer_pick(40) == 0) {
        racer_flush(process->racer, lane);
        return;
    }
    const struct ml_event event = something(process, lane);
    racer_begin(process->racer, lane, &event);
}

/* One store of one thread somewhere; now and then the same one goes on for a while, while nobody
 * else does anything: long enough to repeat stamps. */
static void step(void) {
    static uint32_t index, lane, left;
    if (left == 0 || index >= count) {
        index = racer_pick(count);
        lane = racer_pick(RACER_LANES);
        left = racer_pick(30) == 0 ? 1 + racer_pick(150) : 1;
    }
    left--;
    if (!processes[index].ended) {
        act(&processes[index], lane);
    }
}

static void race(uint32_t most) {
    for (uint32_t i = racer_pick(3) == 0 ? racer_pick(most) : 0; i > 0; i--) {
        step();
    }
}

/* ---- the connection's side */

static void read_pipe(struct process *process, bool all) {
    struct racer *racer = process->racer;
    while (racer->pipe_read < racer->pipe_count) {
        const size_t left = racer->pipe_count - racer->pipe_read;
        size_t part = 1 + racer_pick(racer_pick(2) == 0 ? 30 : 6000);
        part = part < left ? part : left;
        ck_assert_int_eq(
            ml_client_feed(process->client, racer->pipe + racer->pipe_read, part), ML_OK
        );
        racer->pipe_read += part;
        if (!all && racer_pick(3) == 0) {
            return;
        }
    }
}

/* The header's words one by one, in any order. */
static void copy_lane(const struct ml_staging_lane *from, struct ml_staging_lane *to) {
    const uint32_t first = racer_pick(5);
    for (uint32_t i = 0; i < 5; i++) {
        switch ((first + i) % 5) {
        case 0:
            to->published = from->published;
            break;
        case 1:
            to->sent = from->sent;
            break;
        case 2:
            to->lost_chunks = from->lost_chunks;
            break;
        case 3:
            to->produced = from->produced;
            break;
        default:
            to->lost_events = from->lost_events;
            break;
        }
        race(4);
    }
}

static void look(struct process *process) {
    struct racer *racer = process->racer;
    struct ml_staging_lane lanes[RACER_LANES] = {0};
    struct ml_client_want wants[RACER_LANES * RACER_SLOTS];
    const size_t capacity = 1 + racer_pick(RACER_LANES * RACER_SLOTS);
    size_t wanted = 0;
    bool gap[RACER_LANES] = {false}; /* a chunk before it was not taken */
    for (int i = 0; i < RACER_LANES; i++) {
        copy_lane(&racer->lanes[i].header, &lanes[i]);
    }
    ck_assert_int_eq(
        ml_client_lanes(
            process->client, &racer->header, lanes, RACER_LANES, wants, capacity, &wanted
        ),
        ML_OK
    );
    for (size_t i = 0; i < wanted; i++) {
        uint8_t copy[ML_FRAME_MAX_BYTES];
        race(8);
        memcpy(copy, racer_piece(racer, &wants[i]), wants[i].end_bytes - wants[i].start_bytes);
        race(8);
        const struct ml_staging_lane after = racer->lanes[wants[i].lane].header;
        const enum racer_hand hand =
            gap[wants[i].lane] ? RACER_TOO_LATE : racer_hand(racer, &wants[i], &after);
        gap[wants[i].lane] = hand != RACER_COUNTS;
        ck_assert_int_eq(ml_client_tail(process->client, &wants[i], copy, &after), ML_OK);
    }
}

/* No thread sleeps longer than the session's patience. */
static void wake_sleepers(struct process *process) {
    for (uint32_t lane = 0; lane < RACER_LANES; lane++) {
        if (process->racer->lanes[lane].step == RACER_IDLE) {
            process->still[lane] = 0;
        } else if (++process->still[lane] > STILL_ROUNDS) {
            while (racer_step(process->racer, lane)) {
            }
            process->still[lane] = 0;
        }
    }
}

static void read_one(struct process *process) {
    if (workers != NULL) {
        ml_client_take(process->client, racer_pick(WORKERS));
    }
    read_pipe(process, false);
    look(process);
    read_pipe(process, false);
}

static void round_of_reading(void) {
    const uint64_t now = racer_clock++;
    for (uint32_t i = 0; i < count; i++) {
        if (!processes[i].ended) {
            wake_sleepers(&processes[i]);
        }
    }
    if (workers != NULL) {
        ml_session_apart(session);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!processes[i].ended) {
            read_one(&processes[i]);
        }
    }
    if (workers != NULL) {
        ml_session_together(session);
        for (uint32_t i = 0; i < count; i++) {
            ml_client_give_back(processes[i].client);
        }
    }
    ck_assert_int_eq(ml_session_advance(session, now), ML_OK);
    ck_assert(ml_session_check(session));
    ck_assert_uint_le(ml_session_known(session), now);
}

/* One of its threads goes on until it stands between two stores of sending or dropping a chunk. */
static void begin_to_drop(struct process *process) {
    const uint32_t lane = racer_pick(RACER_LANES);
    const enum racer_step where =
        RACER_LOST_EVENTS + racer_pick(RACER_OPEN - RACER_LOST_EVENTS + 1);
    for (uint32_t i = 0; i < 1000 && process->racer->lanes[lane].step != where; i++) {
        act(process, lane);
    }
}

/* Killed between two stores, read to the end, and waited for by its parent, perhaps before the
 * host knows. */
static void kill_process(uint32_t index) {
    struct process *process = &processes[index];
    if (process->racer->drop_percent > 0 && racer_pick(2) == 0) {
        begin_to_drop(process);
    }
    process->ended = true;
    read_pipe(process, true);
    ml_client_pipe_over(process->client);
    for (uint32_t i = 0; i < 40; i++) {
        look(process);
    }
    racer_killed(process->racer);
    racer_clock++;
    struct process *parent = process->parent != 0 ? &processes[process->parent - 1] : NULL;
    if (parent != NULL && !parent->ended && racer_pick(2) == 0) {
        uint32_t lane = 0;
        while (lane < RACER_LANES && parent->racer->lanes[lane].step != RACER_IDLE) {
            lane++;
        }
        if (lane < RACER_LANES && parent->racer->drop_percent == 0) {
            const struct ml_event event = {
                .kind = ML_EVENT_REAPED, .reaped_pid = MODEL_FIRST_PID + index};
            racer_begin(parent->racer, lane, &event);
            while (racer_step(parent->racer, lane)) {
            }
            process->reaped = true;
        }
    }
    racer_evict();
    racer_clock += 1 + racer_pick(20);
    const struct ml_client_end end = {.state = 2, .signal = 9, .end = {.ticks = racer_clock}};
    const struct ml_event event = {.kind = ML_EVENT_END, .time = racer_clock};
    model_add(&model, index, MODEL_HOST_LANE, UINT64_MAX, &event);
    ck_assert_int_eq(ml_client_ended(process->client, &end), ML_OK);
    ck_assert(ml_session_check(session));
}

/* ---- comparing */

/* Of a process that was read to its end the threads' own counts leave nothing open. */
static void compare_accounting(const struct ml_snapshot_process *is, const struct racer *racer) {
    const struct ml_accounting *accounting = &is->accounting;
    uint64_t produced = 0;
    for (uint32_t i = 0; i < RACER_LANES; i++) {
        produced += racer->lanes[i].header.produced;
    }
    ck_assert(accounting->balanced);
    ck_assert_uint_eq(accounting->unaccounted, 0);
    ck_assert_uint_eq(accounting->received, is->events);
    if (is->state != 0) {
        ck_assert_uint_eq(accounting->produced, produced);
        ck_assert_uint_eq(produced, is->events + accounting->overrun + accounting->in_flight);
        ck_assert_uint_eq(accounting->in_flight, 0);
        ck_assert_uint_eq(is->lost_events, accounting->overrun);
    }
}

static void compare_all(void) {
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert(ml_session_check(session));
    model_compare(snapshot, &model);
    for (uint32_t i = 0; i < count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        compare_accounting(process, processes[i].racer);
        if (processes[i].racer->lost) {
            ck_assert(!process->complete);
        } else if (model.clients[i].missed_frees > 0) {
            ck_assert(!process->complete || process->unseen.count_bytes > 0);
        }
    }
    ml_snapshot_free(snapshot);
}

/* All threads stand still at the end of what they did; everything is read. */
static void settle_and_compare(void) {
    static bool held[MODEL_CLIENTS];
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t lane = 0; lane < RACER_LANES && !processes[i].ended; lane++) {
            while (racer_step(processes[i].racer, lane)) {
            }
        }
    }
    const uint64_t now = racer_clock++;
    for (uint32_t i = 0; i < count; i++) {
        held[i] = processes[i].ended;
        processes[i].ended = true; /* it stands still */
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t looks = 0; looks < 200 && !held[i]; looks++) {
            read_pipe(&processes[i], true);
            look(&processes[i]);
            if (ml_client_settled(processes[i].client)) {
                break;
            }
        }
        ck_assert(ml_client_settled(processes[i].client));
    }
    ck_assert_int_eq(ml_session_advance(session, now), ML_OK);
    ck_assert_uint_eq(ml_session_known(session), now);
    for (uint32_t i = 0; i < count; i++) {
        processes[i].ended = held[i];
    }
    model_apply(&model, now);
    compare_all();
}

static void one_run(uint64_t seed, uint32_t drop_percent, unsigned workers_count) {
    const struct ml_timestamp start = {.ticks = 1};
    racer_seed(seed);
    session = ml_session_new(&start, 0);
    ck_assert_ptr_nonnull(session);
    workers = workers_count == 0 ? NULL : ml_workers_new(workers_count);
    ml_session_workers(session, workers, 0);
    model_init(&model);
    model.repeats_stamps = true;
    count = 0;
    add_process(0, drop_percent);
    for (int i = 0; i < STEPS; i++) {
        step();
        if (racer_pick(60) == 0) {
            round_of_reading();
        }
        if (racer_pick(600) == 0) {
            settle_and_compare();
        }
        if (racer_pick(500) == 0 && count < MODEL_CLIENTS) {
            add_process(racer_pick(count + 1), drop_percent);
        }
        const uint32_t index = racer_pick(count);
        if (racer_pick(1000) == 0 && index != 0 && !processes[index].ended) {
            kill_process(index);
        }
    }
    settle_and_compare();
    ck_assert_uint_ge(racer_repeats, STEPS / 50);
    for (uint32_t i = 0; i < count; i++) {
        if (!processes[i].ended) {
            kill_process(i);
        }
    }
    model_apply(&model, UINT64_MAX);
    compare_all();
    for (uint32_t i = 0; i < count; i++) {
        racer_free(processes[i].racer);
    }
    model_fini(&model);
    ml_session_free(session);
    ml_workers_free(workers);
}

START_TEST(threads_that_stop_anywhere_are_counted_to_the_byte) {
    one_run((uint64_t)_i, 0, 0);
}
END_TEST

START_TEST(what_is_left_of_a_stream_with_lost_chunks_is_counted_to_the_byte) {
    one_run((uint64_t)_i + 100000, 15, 0);
}
END_TEST

START_TEST(several_workers_count_both_to_the_byte) {
    one_run((uint64_t)_i + 200000, _i % 2 == 0 ? 0 : 15, WORKERS);
}
END_TEST

int main(void) {
    const char *seeds = getenv("MEMLOG_ORACLE_SEEDS");
    const int runs = seeds != NULL ? atoi(seeds) : FEWER_IF_SANITIZED(25);
    TCase *tcase = tcase_create("oracle");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, threads_that_stop_anywhere_are_counted_to_the_byte, 0, runs);
    tcase_add_loop_test(
        tcase, what_is_left_of_a_stream_with_lost_chunks_is_counted_to_the_byte, 0, runs
    );
    tcase_add_loop_test(tcase, several_workers_count_both_to_the_byte, 0, runs);
    return run_suite("service/race_oracle", tcase);
}
