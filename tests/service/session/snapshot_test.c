#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "service/dump/writer.h"
#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/service/builder_reader.h"
#include "tests/service/session/check.h"
#include "tests/service/stream_builder.h"
#include "tests/suite.h"

/* A snapshot while the stream goes on. Whole processes of random events amid which snapshots are
 * copied are held against the model in oracle_test.c. */

/* So many stacks that a table is copied in many pieces. */
enum { NODES = 3000, LIVE_BYTES = NODES * 64 };

static struct ml_session *session;
static struct ml_client *client;
static struct builder *builder;

static void read_pipe(void) {
    ck_assert_int_eq(builder_read_pipe(builder, client), ML_OK);
}

/* All that was written is read and, as far as it may be, applied. */
static void advance(uint64_t ticks) {
    for (uint32_t i = 0; i < BUILDER_LANES; i++) {
        builder_flush(builder, i);
    }
    read_pipe();
    builder_read_staging(builder, client);
    ck_assert_int_eq(ml_session_advance(session, ticks), ML_OK);
    ck_assert(ml_session_check(session));
}

static void set_up(void) {
    const struct ml_timestamp start = {.ticks = 1};
    const struct ml_client_setup setup = {.id = 1, .pid = 101, .sampling_bytes = 1};
    session = ml_session_new(&start, 0);
    ck_assert_ptr_nonnull(session);
    ck_assert_int_eq(ml_session_add(session, &setup, &client), ML_OK);
    builder = builder_new();
    builder_start(builder, 101, 0);
}

static void tear_down(void) {
    builder_free(builder);
    ml_session_free(session);
}

static void put_stacks(void) {
    for (uint32_t id = 1; id <= NODES; id++) {
        builder_node(builder, 0, id, id / 2);
        builder_alloc(builder, 0, 10, UINT64_C(0x10000) * id, 64, id);
    }
    advance(100);
    ck_assert_uint_eq(ml_client_figures(client).totals.live_bytes, LIVE_BYTES);
}

static enum ml_status swallow(void *context, const uint8_t *bytes, size_t count_bytes) {
    (void)context;
    (void)bytes;
    (void)count_bytes;
    return ML_OK;
}

/* A snapshot that no reader would take is a bug of ours. */
static void can_be_written(const struct ml_snapshot *snapshot) {
    const struct ml_dump_sink sink = {.write = swallow};
    uint64_t written_bytes = 0;
    ck_assert_int_eq(ml_dump_write(snapshot, &sink, &written_bytes), ML_OK);
}

struct interruption {
    unsigned at; /* which rest */
    unsigned rests;
    void (*happens)(void);
};

static void interrupt(void *context) {
    struct interruption *interruption = context;
    if (interruption->rests++ == interruption->at) {
        interruption->happens();
    }
}

static struct ml_snapshot *snapshot_amid(struct interruption *interruption, uint32_t steps) {
    const struct ml_rest rest = {.take = interrupt, .context = interruption, .steps = steps};
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_begin_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert_int_eq(ml_session_copy_tables(session, snapshot, &rest), ML_OK);
    ck_assert(ml_session_check(session));
    return snapshot;
}

/* Blocks go and come, new stacks among them; one event comes late, which otherwise is applied at
 * once. */
static void life_goes_on(void) {
    for (uint32_t id = 1; id <= NODES; id += 3) {
        builder_free_block(builder, 1, 200 + id, UINT64_C(0x10000) * id);
    }
    for (uint32_t id = NODES + 1; id <= NODES + 500; id++) {
        builder_node(builder, 1, id, 1);
        builder_alloc(builder, 1, 4000, UINT64_C(0x10000) * id, 1000, id);
    }
    builder_alloc(builder, 2, 90, 0x99, 7, 1);
    builder_flush(builder, 1);
    builder_flush(builder, 2);
    read_pipe();
    ck_assert_uint_eq(ml_client_figures(client).totals.live_bytes, LIVE_BYTES);
    ck_assert_uint_eq(ml_client_figures(client).late_events, 1);
}

START_TEST(what_comes_while_it_is_copied_is_not_in_it) {
    put_stacks();
    struct interruption interruption = {.at = (unsigned)_i, .happens = life_goes_on};
    struct ml_snapshot *snapshot = snapshot_amid(&interruption, NODES / 2);
    ck_assert_uint_gt(interruption.rests, (unsigned)_i);
    const struct ml_snapshot_process *process = &snapshot->processes[0];
    ck_assert_uint_eq(process->totals.live_bytes, LIVE_BYTES);
    ck_assert_uint_eq(process->events, NODES);
    ck_assert_uint_eq(process->late_events, 0);
    ck_assert_uint_eq(process->cells_count, NODES);
    ck_assert_uint_eq(process->nodes_count, NODES);
    for (uint32_t i = 0; i < NODES; i++) {
        ck_assert_uint_eq(process->cells[i].own.live_bytes, 64);
        ck_assert_uint_eq(process->cells[i].own.total_bytes, 64);
        ck_assert_uint_eq(process->cells[i].own.peak_bytes, 64);
        ck_assert_uint_eq(process->nodes[i].parent, (i + 1) / 2);
    }
    can_be_written(snapshot);
    ml_snapshot_free(snapshot);
    /* The late one is applied behind it, the others in their turn. */
    ck_assert_uint_eq(ml_client_figures(client).totals.live_bytes, LIVE_BYTES + 7);
    advance(5000);
    ck_assert_uint_eq(
        ml_client_figures(client).totals.live_bytes, LIVE_BYTES + 7 - 64 * NODES / 3 + 500 * 1000
    );
}
END_TEST

/* A block at a stack of which nothing was said yet: its chunk is late, or lost. */
static void put_unknown_stack(void) {
    builder_node(builder, 0, 1, 0);
    builder_alloc(builder, 0, 10, 0x1000, 64, 1);
    builder_alloc(builder, 0, 10, 0x2000, 64, 9);
    advance(100);
}

/* And now it is said: a thread's name, a module, and a stack of both. */
static void the_stack_is_told(void) {
    const struct ml_event string = {
        .kind = ML_EVENT_STRING,
        .name = {.id = 1, .bytes = (const uint8_t *)"a thread", .bytes_count = 8}};
    const struct ml_event module = {
        .kind = ML_EVENT_MODULE,
        .module = {
            .id = 1,
            .start = 0x400000,
            .end = 0x500000,
            .path = (const uint8_t *)"/bin/program",
            .path_bytes = 12}};
    const struct ml_event thread = {
        .kind = ML_EVENT_NODE, .node = {.id = 8, .frame = ML_FRAME_THREAD, .string_id = 1}};
    const struct ml_event address = {
        .kind = ML_EVENT_NODE, .node = {.id = 9, .parent = 8, .module = 1, .address = 0x400100}};
    builder_add(builder, 0, &string);
    builder_add(builder, 0, &module);
    builder_add(builder, 0, &thread);
    builder_add(builder, 0, &address);
    builder_flush(builder, 0);
    read_pipe();
}

static bool has_node(const struct ml_snapshot_process *process, uint32_t id) {
    for (uint32_t i = 0; i < process->nodes_count; i++) {
        if (process->nodes[i].id == id) {
            return true;
        }
    }
    return id == 0;
}

static bool has_module(const struct ml_snapshot_process *process, uint32_t id) {
    for (uint32_t i = 0; i < process->modules_count; i++) {
        if (process->modules[i].id == id) {
            return true;
        }
    }
    return id == 0;
}

/* Nothing in it leads to what is not in it. */
static void holds_together(const struct ml_snapshot_process *process) {
    for (uint32_t i = 0; i < process->nodes_count; i++) {
        const struct ml_snapshot_node *node = &process->nodes[i];
        ck_assert(has_node(process, node->parent));
        ck_assert(has_module(process, node->module));
        ck_assert_uint_lt(node->string, process->strings_count);
    }
}

START_TEST(what_is_defined_while_it_is_copied_tears_no_hole) {
    struct interruption never = {.at = UINT32_MAX};
    put_unknown_stack();
    ml_snapshot_free(snapshot_amid(&never, 1));
    ck_assert_uint_gt(never.rests, 4);
    for (unsigned at = 0; at < never.rests; at++) {
        tear_down();
        set_up();
        put_unknown_stack();
        struct interruption interruption = {.at = at, .happens = the_stack_is_told};
        struct ml_snapshot *snapshot = snapshot_amid(&interruption, 1);
        ck_assert_uint_gt(interruption.rests, at);
        holds_together(&snapshot->processes[0]);
        ck_assert(has_node(&snapshot->processes[0], 9));
        can_be_written(snapshot);
        ml_snapshot_free(snapshot);
        ck_assert_int_eq(ml_session_snapshot(session, NULL, 0, &snapshot), ML_OK);
        ck_assert(has_node(&snapshot->processes[0], 8));
        ck_assert(has_module(&snapshot->processes[0], 1));
        holds_together(&snapshot->processes[0]);
        ml_snapshot_free(snapshot);
    }
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_checked_fixture(all, set_up, tear_down);
    /* In the middle of each of its tables, and between them. */
    tcase_add_loop_test(all, what_comes_while_it_is_copied_is_not_in_it, 0, 7);
    tcase_add_test(all, what_is_defined_while_it_is_copied_tears_no_hole);
    return run_suite("service/snapshot", all);
}
