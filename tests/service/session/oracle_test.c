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
#include "tests/service/stream_builder.h"
#include "tests/suite.h"

/* Random processes with random threads, whose pipes are cut at random and whose staging is read at
 * random moments, against the model, to the byte. One test is one seed's whole run. */

enum { ADDRESSES = 48, STEPS = 1500, NODES = 12, WORKERS = 3 };

static uint64_t random_state;

static uint32_t pick(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

struct process {
    struct ml_client *client;
    struct builder *builder;
    uint32_t lanes;
    uint64_t lane_time[BUILDER_LANES]; /* stamps of a lane never fall */
    bool resizing[BUILDER_LANES];
    bool live[ADDRESSES]; /* as the program sees it, for likely events */
    uint64_t serial;      /* of its last fork */
    uint64_t born_of;     /* serial of the parent's fork */
    uint32_t parent;      /* index + 1 */
    bool ended;
};

static struct ml_session *session;
static struct ml_workers *workers; /* NULL: one thread does everything */
static bool sampling;              /* some blocks are sampled */
static struct model model;
static struct process processes[MODEL_CLIENTS];
static uint32_t count;
static uint64_t clock_ticks;
static uint64_t order;

static void add_process(uint32_t parent_plus_1) {
    struct process *process = &processes[count];
    struct ml_client_setup setup = {
        .id = count + 1,
        .parent_id = parent_plus_1,
        .pid = 100 + count,
        .start = {.ticks = clock_ticks},
    };
    process->parent = parent_plus_1;
    if (parent_plus_1 != 0) {
        struct process *parent = &processes[parent_plus_1 - 1];
        process->born_of = parent->serial;
        setup.forked = parent->serial != 0;
        setup.fork_serial = parent->serial;
    }
    ck_assert_int_eq(ml_session_add(session, &setup, &process->client), ML_OK);
    process->builder = builder_new();
    process->builder->chunk_bytes = 40 + pick(300);
    process->lanes = 1 + pick(BUILDER_LANES);
    builder_start(process->builder, setup.pid, 0);
    for (uint32_t id = 1; id < NODES; id++) {
        builder_node(process->builder, 0, id, pick(id));
    }
    ck_assert_uint_eq(model_add_client(&model), count);
    count++;
}

static void emit(uint32_t index, uint32_t lane, struct ml_event *event) {
    struct process *process = &processes[index];
    clock_ticks += pick(4) == 0 ? 0 : pick(3);
    event->time = clock_ticks;
    process->lane_time[lane] = clock_ticks;
    builder_add(process->builder, lane, event);
    model_add(&model, index, lane, order++, event);
}

static void emit_alloc(uint32_t index, uint32_t lane, uint32_t place) {
    struct ml_event event = {.kind = ML_EVENT_ALLOC};
    event.block.address = 0x10000 + (uint64_t)place * 24;
    event.block.size_bytes = pick(5) == 0 ? pick(2) : pick(4000);
    event.block.node = pick(NODES);
    event.block.weight_bytes = event.block.size_bytes;
    event.block.weight_blocks = 1;
    if (sampling && pick(6) == 0) {
        event.block.marks = ML_BLOCK_SAMPLED;
        event.block.weight_bytes += pick(50000);
        event.block.weight_blocks += pick(50);
    }
    if (pick(8) == 0) {
        event.block.type = (uint16_t)pick(3);
    }
    processes[index].live[place] = true;
    emit(index, lane, &event);
}

static void emit_free(uint32_t index, uint32_t lane, uint32_t place, enum ml_event_kind kind) {
    struct ml_event event = {.kind = kind};
    event.block.address = 0x10000 + (uint64_t)place * 24;
    event.block.marks =
        (uint8_t)((pick(8) == 0 ? ML_BLOCK_SKIPPED : 0) | (pick(8) == 0 ? ML_BLOCK_UNSURE : 0));
    processes[index].live[place] = false;
    emit(index, lane, &event);
}

/* One thing happens somewhere. */
static void step(void) {
    const uint32_t index = pick(count);
    struct process *process = &processes[index];
    if (process->ended) {
        return;
    }
    const uint32_t lane = pick(process->lanes);
    const uint32_t place = pick(ADDRESSES);
    struct ml_event event = {.kind = ML_EVENT_NONE};
    if (process->resizing[lane]) {
        process->resizing[lane] = false;
        if (pick(3) == 0) {
            event.kind = ML_EVENT_CANCEL;
            emit(index, lane, &event);
        } else {
            emit_alloc(index, lane, place);
        }
        return;
    }
    const uint32_t what = pick(100);
    if (what == 0) {
        event.kind = ML_EVENT_FORK;
        event.fork_serial = ++process->serial;
        emit(index, lane, &event);
    } else if (what == 1) {
        event.kind = ML_EVENT_END;
        event.end_kind = pick(8) == 0 ? ML_END_EXIT : ML_END_EXEC;
        emit(index, lane, &event);
    } else if (what < 10) {
        process->resizing[lane] = true;
        emit_free(index, lane, place, ML_EVENT_RESIZE);
    } else if (process->live[place] ? what < 98 : what < 14) {
        emit_free(index, lane, place, ML_EVENT_FREE);
        if (pick(4) == 0) {
            emit_alloc(index, lane, place);
            emit_free(index, lane, place, ML_EVENT_FREE);
        }
    } else {
        emit_alloc(index, lane, place);
    }
    if (pick(30) == 0) {
        builder_flush(process->builder, lane);
    }
}

/* ---- the connection's side */

static void read_some(struct process *process, bool all) {
    struct builder *builder = process->builder;
    while (builder->pipe_read < builder->pipe_count) {
        const size_t left = builder->pipe_count - builder->pipe_read;
        size_t part = 1 + pick(pick(2) == 0 ? 30 : 6000);
        part = part < left ? part : left;
        ck_assert_int_eq(
            ml_client_feed(process->client, builder->pipe + builder->pipe_read, part), ML_OK
        );
        builder->pipe_read += part;
        if (!all && pick(3) == 0) {
            return;
        }
    }
}

/* The program runs on while the service looks. */
static void race(void) {
    if (pick(2) == 0) {
        for (uint32_t i = pick(6); i > 0; i--) {
            step();
        }
    }
}

static void look(struct process *process) {
    struct builder *builder = process->builder;
    struct ml_staging_lane lanes[BUILDER_LANES];
    struct ml_client_want wants[BUILDER_LANES];
    size_t wanted = 0;
    for (int i = 0; i < BUILDER_LANES; i++) {
        lanes[i] = builder->lanes[i].header;
        lanes[i].published |= pick(10) == 0 ? ML_PUBLISHED_BUSY : 0;
    }
    ck_assert_int_eq(
        ml_client_lanes(
            process->client,
            &builder->header,
            lanes,
            BUILDER_LANES,
            wants,
            1 + pick(BUILDER_LANES),
            &wanted
        ),
        ML_OK
    );
    for (size_t i = 0; i < wanted; i++) {
        const struct builder_lane *lane = &builder->lanes[wants[i].lane];
        uint8_t copy[ML_FRAME_MAX_BYTES];
        race();
        memcpy(
            copy,
            lane->slot + ML_FRAME_HEADER_BYTES + wants[i].start_bytes,
            wants[i].end_bytes - wants[i].start_bytes
        );
        race();
        ck_assert_int_eq(ml_client_tail(process->client, &wants[i], copy, &lane->header), ML_OK);
    }
}

static void end_process(uint32_t index) {
    struct process *process = &processes[index];
    while (!ml_client_settled(process->client) ||
           process->builder->pipe_read < process->builder->pipe_count) {
        read_some(process, true);
        look(process);
    }
    look(process);
    read_some(process, true);
    while (!ml_client_settled(process->client)) {
        look(process);
        read_some(process, true);
    }
}

static void kill_process(uint32_t index) {
    struct process *process = &processes[index];
    process->ended = true; /* nothing more of it, not in a race either */
    end_process(index);
    clock_ticks++;
    const struct ml_client_end end = {.state = 2, .signal = 9, .end = {.ticks = clock_ticks}};
    const struct ml_event event = {.kind = ML_EVENT_END, .time = clock_ticks};
    model_add(&model, index, MODEL_HOST_LANE, order++, &event);
    ck_assert_int_eq(ml_client_ended(process->client, &end), ML_OK);
    ck_assert(ml_session_check(session));
}

static void read_everybody(void) {
    if (workers != NULL) {
        ml_session_apart(session);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!processes[i].ended) {
            if (workers != NULL) {
                ml_client_take(processes[i].client, pick(WORKERS));
            }
            /* Not always to the end: what is on its way holds the time back, not the truth. */
            do {
                read_some(&processes[i], false);
                look(&processes[i]);
                read_some(&processes[i], false);
            } while (!ml_client_settled(processes[i].client) && pick(3) != 0);
        }
    }
    if (workers != NULL) {
        ml_session_together(session);
        for (uint32_t i = 0; i < count; i++) {
            ml_client_give_back(processes[i].client);
        }
    }
}

/* Everything up to now, but for what a busy lane holds back. */
static void round_of_reading(void) {
    const uint64_t now = clock_ticks++;
    read_everybody();
    ck_assert_int_eq(ml_session_advance(session, now), ML_OK);
    ck_assert(ml_session_check(session));
    ck_assert_uint_le(now, clock_ticks);
}

/* ---- comparing */

/* What a forked child shares is what its parent held when it was forked. */
static void compare_inherited(const struct ml_snapshot_process *is, const struct process *process) {
    if (process->parent == 0 || process->born_of == 0) {
        return;
    }
    const struct model_client *parent = &model.clients[process->parent - 1];
    for (uint32_t i = 0; i < parent->forks_count; i++) {
        if (parent->forks[i].serial == process->born_of) {
            ck_assert_uint_eq(is->inherited_bytes, parent->forks[i].bytes);
            ck_assert_uint_eq(is->inherited_blocks, parent->forks[i].blocks);
        }
    }
}

/* The programs run on while a snapshot is copied, and what they write is read. */
static void flood(void *context) {
    bool *reads = context;
    for (uint32_t i = pick(4); i > 0; i--) {
        step();
    }
    if (*reads && pick(4) == 0) {
        read_everybody();
    }
}

/* `amid`: what happens while it is copied. */
static struct ml_snapshot *take_snapshot(const struct ml_rest *amid) {
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_begin_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert_int_eq(ml_session_copy_tables(session, snapshot, amid), ML_OK);
    ck_assert(ml_session_check(session));
    return snapshot;
}

static void compare_all(void) {
    bool reads = pick(3) != 0;
    const struct ml_rest amid = {.take = flood, .context = &reads, .steps = 1 + pick(60)};
    struct ml_snapshot *snapshot = take_snapshot(&amid);
    model_compare(snapshot, &model);
    for (uint32_t i = 0; i < count; i++) {
        compare_inherited(&snapshot->processes[i], &processes[i]);
    }
    ml_snapshot_free(snapshot);
}

/* All events, nothing held back, and the same in the model. */
static void settle_and_compare(void) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t lane = 0; lane < BUILDER_LANES && !processes[i].ended; lane++) {
            builder_flush(processes[i].builder, lane);
        }
    }
    const uint64_t now = clock_ticks++;
    for (uint32_t i = 0; i < count; i++) {
        struct ml_client_want want;
        size_t wanted = 0;
        struct ml_staging_lane lanes[BUILDER_LANES];
        if (processes[i].ended) {
            continue;
        }
        read_some(&processes[i], true);
        for (int lane = 0; lane < BUILDER_LANES; lane++) {
            lanes[lane] = processes[i].builder->lanes[lane].header;
        }
        ck_assert_int_eq(
            ml_client_lanes(
                processes[i].client,
                &processes[i].builder->header,
                lanes,
                BUILDER_LANES,
                &want,
                1,
                &wanted
            ),
            ML_OK
        );
        ck_assert_uint_eq(wanted, 0);
        ck_assert(ml_client_settled(processes[i].client));
    }
    ck_assert_int_eq(ml_session_advance(session, now), ML_OK);
    model_apply(&model, now);
    compare_all();
}

START_TEST(the_session_agrees_with_the_model_to_the_byte) {
    const struct ml_timestamp start = {.ticks = 1};
    random_state = (uint64_t)_i * UINT64_C(0x9e3779b97f4a7c15) + 1;
    clock_ticks = 10;
    session = ml_session_new(&start, 0);
    ck_assert_ptr_nonnull(session);
    sampling = _i % 3 == 0;
    workers = _i % 2 == 0 ? NULL : ml_workers_new(WORKERS);
    ml_session_workers(session, workers, 0);
    model_init(&model);
    add_process(0);
    for (int i = 0; i < STEPS; i++) {
        step();
        if (pick(40) == 0) {
            round_of_reading();
        }
        if (pick(200) == 0) {
            settle_and_compare();
        }
        if (pick(150) == 0 && count < MODEL_CLIENTS) {
            add_process(pick(3) == 0 ? 0 : 1 + pick(count));
        }
        if (pick(400) == 0) {
            const uint32_t index = pick(count);
            if (index != 0 && !processes[index].ended) {
                kill_process(index);
            }
        }
    }
    settle_and_compare();
    for (uint32_t i = 0; i < count; i++) {
        if (!processes[i].ended) {
            kill_process(i);
        }
    }
    model_apply(&model, UINT64_MAX);
    compare_all();
    for (uint32_t i = 0; i < count; i++) {
        builder_free(processes[i].builder);
    }
    model_fini(&model);
    ml_session_free(session);
    ml_workers_free(workers);
}
END_TEST

int main(void) {
    const char *seeds = getenv("MEMLOG_ORACLE_SEEDS");
    TCase *tcase = tcase_create("oracle");
    tcase_set_timeout(tcase, 60);
    const int runs = seeds != NULL ? atoi(seeds) : FEWER_IF_SANITIZED(60);
    tcase_add_loop_test(tcase, the_session_agrees_with_the_model_to_the_byte, 0, runs);
    return run_suite("service/oracle", tcase);
}
