#include "client/stream/salvage.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

static uint8_t chunk[ML_CHUNK_MAX_BYTES];
static size_t used_bytes;
static struct ml_event_state encoder;

static void start(void) {
    used_bytes = 0;
    encoder = (struct ml_event_state){0};
}

static void put(const struct ml_event *event) {
    struct ml_writer w = ml_writer_into(chunk + used_bytes, sizeof(chunk) - used_bytes);
    ck_assert_int_eq(ml_event_encode(&w, &encoder, event), ML_OK);
    used_bytes += ml_writer_count(&w);
}

static void put_node(uint32_t id, uint32_t parent) {
    put(&(struct ml_event
    ){.kind = ML_EVENT_NODE,
      .node = {.id = id, .parent = parent, .module = 1 + id % 2, .address = 0x400000 + 77 * id}});
}

static void put_block(enum ml_event_kind kind, uint64_t time, uint64_t address) {
    put(&(struct ml_event
    ){.kind = kind,
      .time = time,
      .block = {
          .address = address,
          .size_bytes = kind == ML_EVENT_ALLOC ? 10 : 0,
          .weight_bytes = kind == ML_EVENT_ALLOC ? 10 : 0,
          .weight_blocks = kind == ML_EVENT_ALLOC ? 1 : 0}});
}

/* The kinds of the records [0, count_bytes), and of the nodes their ids. */
static void expect(size_t count_bytes, const char *should) {
    struct ml_reader r = ml_reader_over(chunk, count_bytes);
    struct ml_event_state state = {0};
    char text[1024] = "";
    while (ml_reader_left(&r) > 0) {
        struct ml_event event;
        ck_assert_int_eq(ml_event_decode(&r, &state, &event), ML_OK);
        const size_t end = strlen(text);
        (void)snprintf(text + end, sizeof(text) - end, " %s", ml_event_kind_name(event.kind));
        if (event.kind == ML_EVENT_NODE) {
            ck_assert_uint_eq(event.node.address, 0x400000 + 77 * event.node.id);
            ck_assert_uint_eq(event.node.module, 1 + event.node.id % 2);
            (void)snprintf(text + end + 5, sizeof(text) - end - 5, " %u", event.node.id);
        }
        if (event.kind == ML_EVENT_MODULE) {
            ck_assert_mem_eq(event.module.path, "/lib/a.so", 9);
        }
    }
    ck_assert_str_eq(text, should);
}

static void put_all(void) {
    start();
    put(&(struct ml_event
    ){.kind = ML_EVENT_MODULE,
      .module = {
          .id = 1,
          .start = 0x1000,
          .end = 0x2000,
          .path = (const uint8_t *)"/lib/a.so",
          .path_bytes = 9}});
    put_block(ML_EVENT_ALLOC, 10, 0x1000);
    put_node(1, 0);
    put_block(ML_EVENT_FREE, 11, 0x1000);
    put(&(struct ml_event){.kind = ML_EVENT_FORK, .time = 12, .fork_serial = 3});
    put_node(2, 1);
    put_node(7, 2);
    put_block(ML_EVENT_ALLOC, 13, 0x5000);
}

START_TEST(definitions_move_to_the_front_and_can_be_written_on) {
    struct ml_salvage kept;
    put_all();
    ck_assert_uint_eq(ml_salvage_events(chunk, used_bytes), 3);
    ml_salvage_definitions(chunk, used_bytes, sizeof(chunk), &kept);
    expect(kept.bytes, " MODULE NODE 1 NODE 2 NODE 7");
    ck_assert_uint_eq(kept.timed_count, 1);
    ck_assert_int_eq(kept.timed[0].kind, ML_EVENT_FORK);
    ck_assert_uint_eq(kept.timed[0].fork_serial, 3);
    ck_assert_uint_eq(ml_salvage_events(chunk, kept.bytes), 0);
    used_bytes = kept.bytes;
    encoder = kept.state;
    put_node(8, 7);
    put_block(ML_EVENT_ALLOC, 20, 0x7000);
    expect(used_bytes, " MODULE NODE 1 NODE 2 NODE 7 NODE 8 ALLOC");
}
END_TEST

START_TEST(where_the_room_ends_so_do_the_definitions) {
    struct ml_salvage all;
    put_all();
    ml_salvage_definitions(chunk, used_bytes, sizeof(chunk), &all);
    struct ml_salvage kept;
    put_all();
    ml_salvage_definitions(chunk, used_bytes, all.bytes - 1, &kept);
    expect(kept.bytes, " MODULE NODE 1 NODE 2");
    /* The state is that behind node 2: what follows can be read. */
    used_bytes = kept.bytes;
    encoder = kept.state;
    put_node(9, 2);
    expect(used_bytes, " MODULE NODE 1 NODE 2 NODE 9");
}
END_TEST

START_TEST(of_many_turns_the_latest_stay) {
    struct ml_salvage kept;
    start();
    for (uint32_t i = 1; i <= ML_SALVAGE_TIMED_MAX + 3; i++) {
        put(&(struct ml_event){.kind = ML_EVENT_REAPED, .time = i, .reaped_pid = i});
    }
    ml_salvage_definitions(chunk, used_bytes, sizeof(chunk), &kept);
    ck_assert_uint_eq(kept.bytes, 0);
    ck_assert_uint_eq(kept.timed_count, ML_SALVAGE_TIMED_MAX);
    for (uint32_t i = 0; i < ML_SALVAGE_TIMED_MAX; i++) {
        ck_assert_uint_eq(kept.timed[i].reaped_pid, i + 4);
    }
}
END_TEST

START_TEST(a_chunk_that_somebody_else_wrote_over_harms_nobody) {
    struct ml_salvage kept;
    for (int seed = 0; seed < 2000; seed++) {
        srand((unsigned)seed);
        put_all();
        for (int i = 0; i < 4; i++) {
            chunk[(size_t)rand() % used_bytes] = (uint8_t)rand();
        }
        (void)ml_salvage_events(chunk, used_bytes);
        ml_salvage_definitions(chunk, used_bytes, used_bytes / 2, &kept);
        ck_assert_uint_le(kept.bytes, used_bytes / 2);
        ck_assert_uint_le(kept.timed_count, ML_SALVAGE_TIMED_MAX);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("salvage");
    tcase_add_test(tcase, definitions_move_to_the_front_and_can_be_written_on);
    tcase_add_test(tcase, where_the_room_ends_so_do_the_definitions);
    tcase_add_test(tcase, of_many_turns_the_latest_stay);
    tcase_add_test(tcase, a_chunk_that_somebody_else_wrote_over_harms_nobody);
    return run_suite("client/salvage", tcase);
}
