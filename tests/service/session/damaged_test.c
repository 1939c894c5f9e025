#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/service/session/check.h"
#include "tests/service/stream_builder.h"
#include "tools/dev/stream/pack.h"

/* The golden streams, cut at every byte and with every bit flipped, and numbers at the top of their
 * ranges. Whatever becomes of that client, its neighbour's figures stay to the byte. Runs in the
 * root of the tree. */

static const char folder[] = "tests/golden";
enum {
    STREAMS_MAX = 200,
    NEIGHBOUR_BYTES = 3000,
    NEIGHBOUR_LIVE_BYTES = 1000,
    MEMORY_BYTES = 64 << 20
};

/* The bytes of one golden stream, of all its clients in a row. */
struct stream {
    char name[256];
    uint8_t *bytes;
    size_t count_bytes;
};
static struct stream streams[STREAMS_MAX];
static int streams_count;

struct pair {
    struct ml_session *session;
    struct ml_client *damaged, *neighbour;
};

static struct ml_client *add(struct ml_session *session, uint32_t id) {
    const struct ml_client_setup setup = {.id = id, .pid = 100 + id};
    struct ml_client *client = NULL;
    ck_assert_int_eq(ml_session_add(session, &setup, &client), ML_OK);
    return client;
}

static struct pair pair_open(void) {
    const struct ml_timestamp start = {.ticks = 1};
    struct pair pair = {.session = ml_session_new(&start, MEMORY_BYTES)};
    ck_assert_ptr_nonnull(pair.session);
    pair.damaged = add(pair.session, 1);
    pair.neighbour = add(pair.session, 2);
    struct builder *builder = builder_new();
    builder_start(builder, 102, 0);
    builder_node(builder, 0, 1, 0);
    builder_alloc(builder, 0, 10, 0x1000, NEIGHBOUR_BYTES - NEIGHBOUR_LIVE_BYTES, 1);
    builder_alloc(builder, 0, 20, 0x2000, NEIGHBOUR_LIVE_BYTES, 1);
    builder_free_block(builder, 0, 30, 0x1000);
    builder_flush(builder, 0);
    ck_assert_int_eq(ml_client_feed(pair.neighbour, builder->pipe, builder->pipe_count), ML_OK);
    builder_free(builder);
    return pair;
}

/* Both have ended, so all that came is applied. */
static void pair_end(struct pair *pair) {
    const struct ml_client_end end = {.state = 1, .end = {.ticks = 90}};
    ck_assert_int_eq(ml_session_advance(pair->session, 80), ML_OK);
    ck_assert(ml_session_check(pair->session));
    ck_assert_int_eq(ml_client_ended(pair->damaged, &end), ML_OK);
    ck_assert_int_eq(ml_client_ended(pair->neighbour, &end), ML_OK);
    ck_assert(ml_session_check(pair->session));
}

/* The neighbour is unaffected. */
static void pair_close(struct pair *pair) {
    struct ml_snapshot *snapshot = NULL;
    const struct ml_client_figures figures = ml_client_figures(pair->neighbour);
    ck_assert_int_eq(ml_client_status(pair->neighbour), ML_OK);
    ck_assert(figures.complete);
    ck_assert_uint_eq(figures.totals.live_bytes, NEIGHBOUR_LIVE_BYTES);
    ck_assert_uint_eq(figures.totals.peak_bytes, NEIGHBOUR_BYTES);
    ck_assert_uint_eq(figures.totals.total_bytes, NEIGHBOUR_BYTES);
    ck_assert_uint_eq(figures.events, 3);
    ck_assert_int_eq(ml_session_snapshot(pair->session, NULL, 0, &snapshot), ML_OK);
    ck_assert_uint_eq(snapshot->processes_count, 2);
    ml_snapshot_free(snapshot);
    ml_session_free(pair->session);
}

static void suffer(const uint8_t *bytes, size_t count_bytes) {
    struct pair pair = pair_open();
    const enum ml_status status = ml_client_feed(pair.damaged, bytes, count_bytes);
    ck_assert(status == ML_OK || ml_status_family(status) == ML_FAMILY_PEER);
    pair_end(&pair);
    pair_close(&pair);
}

START_TEST(a_stream_cut_anywhere_harms_nobody_else) {
    const struct stream *stream = &streams[_i];
    for (size_t count = 0; count < stream->count_bytes; count++) {
        /* In memory of its size: a sanitizer sees a step behind it. */
        uint8_t *copy = malloc(count + 1);
        memcpy(copy, stream->bytes, count);
        suffer(copy, count);
        free(copy);
    }
}
END_TEST

START_TEST(a_stream_with_any_bit_flipped_harms_nobody_else) {
    const struct stream *stream = &streams[_i];
    for (size_t bit = 0; bit < stream->count_bytes * 8; bit++) {
        stream->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        suffer(stream->bytes, stream->count_bytes);
        stream->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}
END_TEST

/* Blocks of the largest size, one after another: their sum goes beyond 64 bits. */
START_TEST(totals_beyond_64_bits_stay_at_the_top) {
    struct pair pair = pair_open();
    struct builder *builder = builder_new();
    builder_start(builder, 101, 0);
    builder_node(builder, 0, 1, 0);
    for (uint64_t i = 0; i <= UINT64_MAX / (ML_SIZE_MAX_BYTES - 1); i++) {
        builder_alloc(builder, 0, 10, 0x1000, ML_SIZE_MAX_BYTES - 1, 1);
        builder_free_block(builder, 0, 10, 0x1000);
    }
    builder_flush(builder, 0);
    ck_assert_int_eq(ml_client_feed(pair.damaged, builder->pipe, builder->pipe_count), ML_OK);
    pair_end(&pair);
    const struct ml_client_figures figures = ml_client_figures(pair.damaged);
    ck_assert_int_eq(ml_client_status(pair.damaged), ML_OK);
    ck_assert_uint_eq(figures.totals.total_bytes, UINT64_MAX);
    ck_assert_uint_eq(figures.totals.live_bytes, 0);
    ck_assert_uint_eq(figures.totals.peak_bytes, ML_SIZE_MAX_BYTES - 1);
    ck_assert_uint_eq(ml_session_totals(pair.session).total_bytes, UINT64_MAX);
    builder_free(builder);
    pair_close(&pair);
}
END_TEST

/* Two blocks of the largest size are more than a client may have. */
START_TEST(who_has_more_live_than_can_be_is_lost_alone) {
    struct pair pair = pair_open();
    struct builder *builder = builder_new();
    builder_start(builder, 101, 0);
    builder_node(builder, 0, 1, 0);
    builder_alloc(builder, 0, 10, 0x1000, ML_SIZE_MAX_BYTES - 1, 1);
    builder_alloc(builder, 0, 11, 0x2000, ML_SIZE_MAX_BYTES - 1, 1);
    builder_flush(builder, 0);
    ck_assert_int_eq(ml_client_feed(pair.damaged, builder->pipe, builder->pipe_count), ML_OK);
    pair_end(&pair);
    ck_assert_int_eq(ml_client_status(pair.damaged), ML_PEER_LIMIT);
    ck_assert(!ml_client_figures(pair.damaged).complete);
    builder_free(builder);
    pair_close(&pair);
}
END_TEST

/* Every counter of staging at the top of its range, on every lane. */
START_TEST(counters_at_the_top_of_their_ranges_do_not_wrap) {
    struct pair pair = pair_open();
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC,
        .version = ML_STAGING_VERSION,
        .slots = 1,
        .lanes_used = ML_LANES_MAX,
        .truncated_stacks = UINT64_MAX,
        .broken_stacks = UINT64_MAX,
        .lost_no_lane = UINT64_MAX,
        .lost_nested = UINT64_MAX,
        .lost_no_pipe = UINT64_MAX,
        .lost_no_node = UINT64_MAX,
        .unwind_checked = UINT64_MAX,
        .unwind_differed = UINT64_MAX,
        .node_count = UINT64_MAX,
        .lost_messages = UINT64_MAX};
    static struct ml_staging_lane lanes[ML_LANES_MAX];
    static struct ml_client_want wants[ML_LANES_MAX];
    size_t wanted = 0;
    for (size_t i = 0; i < ML_LANES_MAX; i++) {
        lanes[i] = (struct ml_staging_lane
        ){.lost_chunks = UINT64_MAX,
          .lost_events = UINT64_MAX,
          .waited_ns = UINT64_MAX,
          .longest_wait_ns = UINT64_MAX,
          .waits = UINT32_MAX,
          .produced = UINT64_MAX};
    }
    for (int look = 0; look < 3; look++) {
        (void
        )!ml_client_lanes(pair.damaged, &header, lanes, ML_LANES_MAX, wants, ML_LANES_MAX, &wanted);
        ck_assert_int_eq(ml_session_advance(pair.session, 40 + (uint64_t)look), ML_OK);
    }
    pair_end(&pair);
    const struct ml_client_figures figures = ml_client_figures(pair.damaged);
    ck_assert(!figures.complete);
    ck_assert_uint_eq(figures.lost_events, UINT64_MAX);
    ck_assert_uint_eq(figures.accounting.produced, UINT64_MAX);
    ck_assert_uint_eq(figures.broken_stacks, UINT64_MAX);
    pair_close(&pair);
}
END_TEST

/* One client more than there may be is refused, and the others stay. */
START_TEST(one_client_too_many_is_refused) {
    const struct ml_timestamp start = {.ticks = 1};
    struct ml_session *session = ml_session_new(&start, 0);
    struct ml_client *client = NULL;
    ck_assert_ptr_nonnull(session);
    for (uint32_t id = 1; id <= ML_SESSION_CLIENTS_MAX; id++) {
        const struct ml_client_setup setup = {.id = id, .pid = id};
        ck_assert_int_eq(ml_session_add(session, &setup, &client), ML_OK);
    }
    const struct ml_client_setup one_more = {.id = ML_SESSION_CLIENTS_MAX + 1, .pid = 1};
    ck_assert_int_eq(ml_session_add(session, &one_more, &client), ML_PEER_LIMIT);
    ck_assert_ptr_nonnull(ml_session_find(session, ML_SESSION_CLIENTS_MAX));
    ml_session_free(session);
}
END_TEST

/* ---- the streams */

static void pack(FILE *in, struct stream *stream) {
    struct ml_stream_packer *packer = ml_stream_packer_new();
    char *line = NULL;
    size_t capacity = 0;
    while (packer != NULL && getline(&line, &capacity, in) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '@' && ml_stream_packer_line(packer, line) != ML_OK) {
            break; /* a second client's frames: chunks begin anew there */
        }
    }
    if (packer == NULL || ml_stream_packer_flush(packer) != ML_OK) {
        abort();
    }
    stream->count_bytes = packer->out_count;
    stream->bytes = malloc(packer->out_count + 1);
    memcpy(stream->bytes, packer->out, packer->out_count);
    free(line);
    ml_stream_packer_free(packer);
}

static void find_streams(void) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        char path[512];
        if (strstr(entry->d_name, ".stream.txt") == NULL || streams_count == STREAMS_MAX) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        FILE *in = fopen(path, "r");
        if (in != NULL) {
            struct stream *stream = &streams[streams_count++];
            (void)snprintf(stream->name, sizeof(stream->name), "%s", entry->d_name);
            pack(in, stream);
            (void)fclose(in);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

int main(void) {
    find_streams();
    if (streams_count == 0) {
        (void)fprintf(stderr, "no streams in %s: run in the root of the tree\n", folder);
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("service/damaged");
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 120); /* far more than any takes */
    tcase_add_loop_test(damaged, a_stream_cut_anywhere_harms_nobody_else, 0, streams_count);
    tcase_add_loop_test(damaged, a_stream_with_any_bit_flipped_harms_nobody_else, 0, streams_count);
    suite_add_tcase(suite, damaged);
    TCase *tops = tcase_create("tops");
    tcase_set_timeout(tops, 120);
    tcase_add_test(tops, totals_beyond_64_bits_stay_at_the_top);
    tcase_add_test(tops, who_has_more_live_than_can_be_is_lost_alone);
    tcase_add_test(tops, counters_at_the_top_of_their_ranges_do_not_wrap);
    tcase_add_test(tops, one_client_too_many_is_refused);
    suite_add_tcase(suite, tops);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    for (int i = 0; i < streams_count; i++) {
        free(streams[i].bytes);
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
