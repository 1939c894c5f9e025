#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "tests/service/builder_reader.h"
#include "tests/service/session/check.h"
#include "tests/service/stream_builder.h"
#include "tests/suite.h"

/* What random runs seldom reach: lane headers read at the worst moment, and memory that ends at any
 * place. */

enum { SLOTS_MAX = BUILDER_LANES };

static struct ml_session *session;
static struct ml_client *client;
static struct builder *builder;

static void begin(uint64_t max_memory_bytes) {
    const struct ml_timestamp start = {.ticks = 1};
    session = ml_session_new(&start, max_memory_bytes);
    ck_assert_ptr_nonnull(session);
    builder = builder_new();
    client = NULL;
}

static void finish(void) {
    builder_free(builder);
    ml_session_free(session);
}

static enum ml_status add(void) {
    const struct ml_client_setup setup = {.id = 1, .pid = 101, .sampling_bytes = 1};
    builder_start(builder, setup.pid, 0);
    builder_node(builder, 0, 1, 0);
    return ml_session_add(session, &setup, &client);
}

static enum ml_status read_pipe(void) {
    return builder_read_pipe(builder, client);
}

static enum ml_status look(const struct ml_staging_lane *lane_0) {
    struct ml_staging_lane lanes[BUILDER_LANES];
    struct ml_client_want wants[SLOTS_MAX];
    size_t count = 0;
    for (int i = 0; i < BUILDER_LANES; i++) {
        lanes[i] = builder->lanes[i].header;
    }
    if (lane_0 != NULL) {
        lanes[0] = *lane_0;
    }
    enum ml_status status =
        ml_client_lanes(client, &builder->header, lanes, BUILDER_LANES, wants, SLOTS_MAX, &count);
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        const struct builder_lane *lane = &builder->lanes[wants[i].lane];
        const uint8_t *bytes = lane->slot + ML_FRAME_HEADER_BYTES + wants[i].start_bytes;
        status = ml_client_tail(client, &wants[i], bytes, &lane->header);
    }
    return status;
}

START_TEST(a_loss_that_is_read_before_its_place_hides_no_chunk_in_the_pipe) {
    begin(0);
    ck_assert_int_eq(add(), ML_OK);
    builder_alloc(builder, 0, 10, 0x1000, 100, 1);
    builder_flush(builder, 0);
    const struct ml_staging_lane before = builder->lanes[0].header;
    builder_alloc(builder, 0, 20, 0x2000, 50, 1);
    builder->lanes[0].drops = true;
    builder_flush(builder, 0);
    /* Chunk 0 is in the pipe; 1 was dropped between the readings of `sent` and of `lost_chunks`. */
    struct ml_staging_lane torn = before;
    torn.lost_chunks = builder->lanes[0].header.lost_chunks;
    ck_assert_int_eq(look(&torn), ML_OK);
    ck_assert(!ml_client_settled(client));
    ck_assert_int_eq(ml_session_advance(session, 100), ML_OK);
    ck_assert_uint_lt(ml_session_known(session), 100);
    /* Read as it is, the loss still stands for chunk 1, not for both. */
    ck_assert_int_eq(look(NULL), ML_OK);
    ck_assert(!ml_client_settled(client));
    ck_assert_int_eq(read_pipe(), ML_OK);
    ck_assert_int_eq(look(NULL), ML_OK);
    ck_assert(ml_client_settled(client));
    ck_assert_int_eq(ml_session_advance(session, 101), ML_OK);
    ck_assert_uint_eq(ml_session_known(session), 101);
    const struct ml_client_figures figures = ml_client_figures(client);
    ck_assert_uint_eq(figures.late_events, 0);
    ck_assert_uint_eq(figures.totals.live_bytes, 100);
    ck_assert(!figures.complete);
    finish();
}
END_TEST

/* Everything that takes memory: nodes, cells, blocks, wide blocks, lanes, forks, reuse, staging. */
static void write_all_kinds(void) {
    for (uint32_t id = 2; id < 600; id++) {
        builder_node(builder, 0, id, id - 1);
    }
    for (uint32_t i = 0; i < 3000; i++) {
        const struct ml_event event = {
            .kind = ML_EVENT_ALLOC,
            .time = 10 + i,
            .block =
                {.address = 0x1000 + 16 * (uint64_t)(i % 2000),
                 .size_bytes = i,
                 .weight_bytes = i + i % 3,
                 .weight_blocks = 1 + i % 3,
                 .node = 1 + i % 599,
                 .marks = i % 3 != 0 ? ML_BLOCK_SAMPLED : 0},
        };
        builder_add(builder, i % BUILDER_LANES, &event);
        if (i % 50 == 0) {
            builder_timed(builder, 0, ML_EVENT_FORK, 10 + i, 1 + i);
        }
        if (i % 7 == 0) {
            builder_timed(builder, i % BUILDER_LANES, ML_EVENT_RESIZE, 10 + i, event.block.address);
            builder_timed(builder, i % BUILDER_LANES, ML_EVENT_CANCEL, 10 + i, 0);
        }
    }
}

/* The budget in steps of 4 KiB, up to where it is enough. */
START_TEST(memory_may_end_anywhere_and_only_that_client_is_lost) {
    bool enough = false;
    uint64_t lost = 0;
    for (uint64_t budget = 4096; !enough; budget += 4096) {
        ck_assert_uint_lt(budget, 16 << 20);
        begin(budget);
        enum ml_status status = add();
        if (status == ML_OK) {
            write_all_kinds();
            status = read_pipe();
            status = status == ML_OK ? look(NULL) : status;
            ck_assert(status == ML_OK || status == ML_ENV_MEMORY);
            ck_assert_int_eq(ml_session_advance(session, 1000), ML_OK);
            ck_assert(ml_session_check(session));
            ck_assert_int_eq(ml_session_advance(session, 100000), ML_OK);
            ck_assert(ml_session_check(session));
            status = ml_client_status(client);
            ck_assert(status == ML_OK || !ml_client_figures(client).complete);
            const struct ml_client_end end = {.state = 1, .end = {.ticks = 200000}};
            ck_assert_int_eq(ml_client_ended(client, &end), ML_OK);
            ck_assert(ml_session_check(session));
            enough = status == ML_OK;
        }
        ck_assert(status == ML_OK || status == ML_ENV_MEMORY);
        lost += status == ML_ENV_MEMORY;
        finish();
    }
    ck_assert_uint_gt(lost, 20);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("hard_times");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_loss_that_is_read_before_its_place_hides_no_chunk_in_the_pipe);
    tcase_add_test(tcase, memory_may_end_anywhere_and_only_that_client_is_lost);
    return run_suite("service/hard_times", tcase);
}
