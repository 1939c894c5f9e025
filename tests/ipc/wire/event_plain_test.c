#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#include "ipc/wire/event_plain.h"

/* The decoder of many plain records at a time says the same as ml_event_decode(), on everything. */

enum { STREAM_BYTES = 600, ROUNDS = FEWER_IF_SANITIZED(4000) };

static uint64_t random_state = 1;

static uint64_t next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Numbers of every length, small ones most often. */
static uint64_t pick(unsigned bits) {
    return next() >> (64 - 1 - next() % bits);
}

/* Of one of two modules, rarely no address at all. */
static void random_node(struct ml_event *event) {
    struct ml_event_node *node = &event->node;
    node->id = (uint32_t)pick(23) + 1;
    node->parent = node->id - 1 - (uint32_t)(next() % 4 == 0 ? pick(23) % node->id : 0);
    node->frame = next() % 20 == 0 ? ML_FRAME_CUT : ML_FRAME_ADDRESS;
    if (node->frame == ML_FRAME_ADDRESS) {
        node->module = next() % 10 == 0 ? 2 : 1;
        node->address = next() % 20 == 0 ? pick(55) : 0x7f0000000000 + pick(24);
    }
}

static void random_event(struct ml_event *event, uint64_t *time) {
    static const enum ml_event_kind kinds[] = {
        ML_EVENT_ALLOC,
        ML_EVENT_ALLOC,
        ML_EVENT_ALLOC,
        ML_EVENT_FREE,
        ML_EVENT_FREE,
        ML_EVENT_RESIZE,
        ML_EVENT_CANCEL,
        ML_EVENT_NODE,
        ML_EVENT_NODE,
    };
    memset(event, 0, sizeof(*event));
    event->kind = kinds[next() % 9];
    if (event->kind == ML_EVENT_NODE) {
        random_node(event);
        return;
    }
    *time += pick(next() % 20 == 0 ? 50 : 30);
    event->time = *time;
    if (event->kind == ML_EVENT_CANCEL) {
        return;
    }
    struct ml_event_block *block = &event->block;
    block->address = next() % 4 == 0 ? pick(55) + 1 : 0x7f0000000000 + (pick(30) + 1) * 16;
    block->heap = (uint8_t)(next() % 30 == 0 ? pick(7) : 0);
    if (event->kind != ML_EVENT_ALLOC) {
        block->marks = next() % 30 == 0 ? ML_BLOCK_SKIPPED : 0;
        block->marks |= next() % 30 == 0 ? ML_BLOCK_UNSURE : 0;
        return;
    }
    block->size_bytes = pick(next() % 10 == 0 ? 47 : 20);
    block->node = next() % 2 == 0 ? 7 : (uint32_t)pick(23);
    const bool weighted = next() % 30 == 0;
    block->marks = weighted ? ML_BLOCK_SAMPLED : 0;
    block->weight_bytes = block->size_bytes + (weighted ? pick(40) : 0);
    block->weight_blocks = weighted ? pick(20) + 2 : 1;
}

static size_t random_stream(uint8_t *bytes) {
    struct ml_writer w = ml_writer_into(bytes, STREAM_BYTES);
    struct ml_event_state state = {0};
    uint64_t time = 0;
    enum ml_status status = ML_OK;
    while (status == ML_OK) {
        struct ml_event event;
        random_event(&event, &time);
        status = ml_event_encode(&w, &state, &event);
    }
    ck_assert_int_eq(status, ML_BUG_SPACE);
    return ml_writer_count(&w);
}

static void same_state(const struct ml_event_state *a, const struct ml_event_state *b) {
    ck_assert_uint_eq(a->time, b->time);
    ck_assert_uint_eq(a->address, b->address);
    ck_assert_uint_eq(a->node, b->node);
    ck_assert_uint_eq(a->node_id, b->node_id);
    ck_assert_uint_eq(a->node_address, b->node_address);
    ck_assert_uint_eq(a->node_module, b->node_module);
}

static uint64_t plain_count;
static uint64_t plain_nodes;

/* One by one: the nodes that are plain as ml_event_decode() says. */
static void compare_nodes(struct ml_reader *r, struct ml_event_state *state) {
    struct ml_event_node node;
    struct ml_reader other = *r;
    struct ml_event_state other_state = *state;
    while (ml_event_decode_plain_node(r, state, &node)) {
        struct ml_event event;
        ck_assert_int_eq(ml_event_decode(&other, &other_state, &event), ML_OK);
        ck_assert_int_eq(event.kind, ML_EVENT_NODE);
        ck_assert_uint_eq(node.id, event.node.id);
        ck_assert_uint_eq(node.parent, event.node.parent);
        ck_assert_uint_eq(node.frame, event.node.frame);
        ck_assert_uint_eq(node.module, event.node.module);
        ck_assert_uint_eq(node.address, event.node.address);
        ck_assert_uint_eq(node.string_id, event.node.string_id);
        plain_nodes++;
    }
    ck_assert_ptr_eq(r->pos, other.pos);
    same_state(state, &other_state);
}

/* Decode as far as it goes: a run of plain records against one by one. False at an end of any kind.
 */
static bool compare_run(struct ml_reader *r, struct ml_event_state *state) {
    struct ml_event_plain run[STREAM_BYTES];
    const size_t capacity = next() % 3 == 0 ? next() % 5 : STREAM_BYTES;
    struct ml_reader other = *r;
    struct ml_event_state other_state = *state;
    uint64_t sum = 0;
    uint64_t sum_bytes = 0;

    const size_t count = ml_event_decode_plain(r, state, run, capacity, &sum_bytes);
    ck_assert_uint_le(count, capacity);
    for (size_t i = 0; i < count; i++) {
        struct ml_event event;
        ck_assert_int_eq(ml_event_decode(&other, &other_state, &event), ML_OK);
        const bool alloc = event.kind == ML_EVENT_ALLOC;
        ck_assert_uint_eq(run[i].kind, event.kind);
        ck_assert_uint_eq(run[i].time, event.time);
        ck_assert_uint_eq(run[i].address, event.block.address);
        ck_assert_uint_eq(run[i].size_bytes, alloc ? event.block.size_bytes : 0);
        ck_assert_uint_eq(run[i].node, alloc ? event.block.node : 0);
        ck_assert_uint_eq(event.block.heap, 0);
        ck_assert_uint_eq(event.block.type, 0);
        ck_assert(!alloc || event.block.weight_bytes == event.block.size_bytes);
        ck_assert(!alloc || event.block.weight_blocks == 1);
        ck_assert_uint_eq(event.block.marks, 0);
        sum += run[i].size_bytes;
    }
    plain_count += count;
    ck_assert_uint_eq(sum, sum_bytes);
    ck_assert_ptr_eq(r->pos, other.pos);
    same_state(state, &other_state);
    compare_nodes(r, state);
    struct ml_event event;
    return ml_event_decode(r, state, &event) == ML_OK;
}

/* The bytes in a block of their own, so that AddressSanitizer sees what lies behind them. */
static void compare_stream(const uint8_t *bytes, size_t count) {
    uint8_t *copy = malloc(count > 0 ? count : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, count);
    struct ml_reader r = ml_reader_over(copy, count);
    struct ml_event_state state = {0};
    while (compare_run(&r, &state)) {
    }
    free(copy);
}

START_TEST(says_the_same_on_streams_as_clients_write_them) {
    uint8_t bytes[STREAM_BYTES];
    uint64_t stream_bytes = 0;
    plain_count = 0;
    plain_nodes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const size_t count = random_stream(bytes);
        stream_bytes += count;
        compare_stream(bytes, count);
    }
    /* It does take most of them: records are at most 20 bytes here. */
    ck_assert_uint_gt(plain_count, stream_bytes / 50);
    ck_assert_uint_gt(plain_nodes, stream_bytes / 200);
}
END_TEST

START_TEST(says_the_same_on_bytes_that_somebody_has_changed) {
    uint8_t bytes[STREAM_BYTES];
    for (int i = 0; i < ROUNDS; i++) {
        const size_t count = random_stream(bytes);
        for (uint64_t changes = 1 + next() % 4; changes > 0; changes--) {
            bytes[next() % count] = (uint8_t)(next() % 3 == 0 ? next() : next() % 2 * 0x80);
        }
        compare_stream(bytes, next() % 2 == 0 ? count : next() % count);
    }
}
END_TEST

START_TEST(says_the_same_on_bytes_without_any_meaning) {
    uint8_t bytes[128];
    for (int i = 0; i < ROUNDS * 10; i++) {
        static const uint8_t ops[] = {0x01, 0x11, 0x09, 0x19, 0x02, 0x0a, 0x03, 0x0b, 0x0c};
        for (size_t k = 0; k < sizeof(bytes); k++) {
            bytes[k] = (uint8_t)(next() % 4 == 0 ? next() | 0x80 : next() % 0x80);
        }
        bytes[0] = ops[next() % sizeof(ops)];
        compare_stream(bytes, sizeof(bytes));
    }
}
END_TEST

/* A number of many bytes, at the edge of what is allowed. */
static void one_alloc(uint64_t time, int64_t moved, uint64_t size, uint64_t node, uint64_t base) {
    uint8_t bytes[256] = {0};
    struct ml_writer w = ml_writer_into(bytes, sizeof(bytes));
    struct ml_event_state state = {.address = base, .time = 5};
    ml_writer_u8(&w, ML_OP_ALLOC);
    ml_writer_varint(&w, time);
    ml_writer_zigzag(&w, moved);
    ml_writer_varint(&w, size);
    ml_writer_zigzag(&w, (int64_t)node);
    struct ml_reader r = ml_reader_over(bytes, sizeof(bytes));
    (void)compare_run(&r, &state);
}

START_TEST(says_the_same_at_the_edges_of_what_is_allowed) {
    static const int64_t moves[] = {0, 1, -1, 1 << 20, -(1 << 20), INT64_MIN, INT64_MAX};
    static const uint64_t values[] = {
        0,
        1,
        127,
        128,
        ((uint64_t)1 << 24) - 1,
        (uint64_t)1 << 24,
        ((uint64_t)1 << 28) - 1,
        (uint64_t)1 << 28,
        ML_SIZE_MAX_BYTES,
        UINT64_MAX - 5,
        UINT64_MAX,
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
        for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++) {
            for (size_t m = 0; m < sizeof(moves) / sizeof(*moves); m++) {
                one_alloc(values[i], moves[m], values[k], 1, 0x1000);
                one_alloc(1, moves[m], values[k], values[i] >> 1, 0x1000);
            }
        }
    }
    const int64_t limit = (int64_t)ML_ADDRESS_MAX / 16;
    for (int64_t around = -2; around <= 2; around++) {
        one_alloc(1, limit + around, 1, 1, 0);
        one_alloc(1, limit + around, 1, 1, 0x1000);
        one_alloc(1, -limit + around, 1, 1, ML_ADDRESS_MAX - 16);
        one_alloc(1, -0x100 + around, 1, 1, 0x1000);
        one_alloc(1, (int64_t)1 << 60, 1, 1, 0x1000 + (uint64_t)around);
    }
}
END_TEST

/* A node's numbers at the edges, behind one that has left the state at `base`. */
static void one_node(int64_t id, uint64_t below, int64_t moved, struct ml_event_state base) {
    uint8_t bytes[256] = {0};
    struct ml_writer w = ml_writer_into(bytes, sizeof(bytes));
    ml_writer_u8(&w, ML_OP_NODE | ML_NODE_SAME_MODULE);
    ml_writer_zigzag(&w, id);
    ml_writer_varint(&w, below);
    ml_writer_zigzag(&w, moved);
    struct ml_reader r = ml_reader_over(bytes, sizeof(bytes));
    (void)compare_run(&r, &base);
}

START_TEST(says_the_same_of_nodes_at_the_edges_of_what_is_allowed) {
    static const int64_t ids[] = {0, 1, -1, -5, -6, ML_NODES_MAX - 6, ML_NODES_MAX - 5, INT64_MIN};
    static const uint64_t belows[] = {0, 1, 5, 6, 7, ML_NODES_MAX - 1, ML_NODES_MAX, UINT64_MAX};
    static const int64_t moves[] = {
        0,
        -0x1000,
        -0x1001,
        (int64_t)(ML_ADDRESS_MAX - 0x1001),
        (int64_t)(ML_ADDRESS_MAX - 0x1000),
        INT64_MIN,
        INT64_MAX,
    };
    const struct ml_event_state base = {.node_id = 5, .node_address = 0x1000, .node_module = 3};
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        for (size_t k = 0; k < sizeof(belows) / sizeof(*belows); k++) {
            for (size_t m = 0; m < sizeof(moves) / sizeof(*moves); m++) {
                one_node(ids[i], belows[k], moves[m], base);
            }
        }
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("event_plain");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, says_the_same_on_streams_as_clients_write_them);
    tcase_add_test(cases, says_the_same_on_bytes_that_somebody_has_changed);
    tcase_add_test(cases, says_the_same_on_bytes_without_any_meaning);
    tcase_add_test(cases, says_the_same_at_the_edges_of_what_is_allowed);
    tcase_add_test(cases, says_the_same_of_nodes_at_the_edges_of_what_is_allowed);
    return run_suite("event_plain", cases);
}
