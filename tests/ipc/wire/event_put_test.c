#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#include "ipc/wire/event_put.h"

/* The client's inline encoder and ml_event_encode() write the same bytes and keep the same state.
 */

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

static void random_event(struct ml_event *event, uint64_t *time) {
    static const enum ml_event_kind kinds[] = {
        ML_EVENT_ALLOC, ML_EVENT_FREE, ML_EVENT_RESIZE, ML_EVENT_CANCEL, ML_EVENT_NODE};
    memset(event, 0, sizeof(*event));
    event->kind = kinds[next() % 5];
    if (event->kind == ML_EVENT_NODE) {
        event->node.id = (uint32_t)pick(23) + 1;
        event->node.parent = (uint32_t)(next() % event->node.id);
        event->node.module = (uint32_t)(next() % 3);
        event->node.address = pick(55);
        return;
    }
    *time += pick(30);
    event->time = *time;
    if (event->kind == ML_EVENT_CANCEL) {
        return;
    }
    event->block.address = next() % 2 == 0 ? pick(55) + 1 : (pick(51) + 1) * 16;
    event->block.heap = next() % 3 == 0 && event->kind != ML_EVENT_RESIZE ? (uint8_t)next() : 0;
    if (event->kind == ML_EVENT_ALLOC) {
        event->block.size_bytes = pick(47);
        event->block.type = event->block.heap != 0 ? (uint16_t)pick(16) : 0;
        event->block.node = next() % 2 == 0 ? 7 : (uint32_t)pick(23);
        const bool sampled = next() % 4 == 0;
        event->block.marks = sampled ? ML_BLOCK_SAMPLED : 0;
        event->block.weight_bytes = event->block.size_bytes + (sampled ? pick(40) : 0);
        event->block.weight_blocks = sampled ? pick(20) + 1 : 1;
    } else {
        event->block.marks = next() % 4 == 0 ? ML_BLOCK_SKIPPED : 0;
        event->block.marks |= next() % 4 == 0 ? ML_BLOCK_UNSURE : 0;
    }
}

static unsigned free_op(const struct ml_event *event) {
    const struct ml_event_block *block = &event->block;
    const unsigned op = event->kind == ML_EVENT_FREE ? ML_OP_FREE : ML_OP_RESIZE;
    return op | ((block->marks & ML_BLOCK_SKIPPED) != 0 ? ML_FREE_SKIPPED : 0U) |
           ((block->marks & ML_BLOCK_UNSURE) != 0 ? ML_FREE_UNSURE : 0U);
}

static uint8_t *put(uint8_t *pos, struct ml_event_state *state, const struct ml_event *event) {
    const struct ml_event_block *block = &event->block;
    switch (event->kind) {
    case ML_EVENT_NODE:
        return ml_put_node_address(
            pos, state, event->node.id, event->node.parent, event->node.address, event->node.module
        );
    case ML_EVENT_CANCEL:
        return ml_put_cancel(pos, state, event->time);
    default:
        break;
    }
    if (event->kind == ML_EVENT_ALLOC && block->heap != 0) {
        struct ml_event_block typed = *block;
        typed.weight_blocks = block->marks != 0 ? block->weight_blocks : 0;
        return ml_put_alloc_typed(pos, ml_put_time(pos + 1, state, event->time), state, &typed);
    }
    if (block->heap != 0) {
        uint8_t *of_heap = ml_put_time(pos + 1, state, event->time);
        return ml_put_free_of_heap(
            pos, of_heap, state, block->address, free_op(event), block->heap
        );
    }
    if (event->kind == ML_EVENT_ALLOC && block->marks != 0) {
        return ml_put_alloc_sampled(
            pos,
            state,
            event->time,
            block->address,
            block->size_bytes,
            block->node,
            block->weight_bytes,
            block->weight_blocks
        );
    }
    uint8_t *rest = ml_put_time(pos + 1, state, event->time);
    return event->kind == ML_EVENT_ALLOC
               ? ml_put_alloc_rest(pos, rest, state, block->address, block->size_bytes, block->node)
               : ml_put_free_rest(pos, rest, state, block->address, free_op(event));
}

static bool same_state(const struct ml_event_state *a, const struct ml_event_state *b) {
    return a->time == b->time && a->address == b->address && a->node == b->node &&
           a->node_id == b->node_id && a->node_address == b->node_address &&
           a->node_module == b->node_module;
}

START_TEST(both_encoders_write_the_same_bytes) {
    struct ml_event_state inline_state = {0};
    struct ml_event_state state = {0};
    uint64_t time = 0;
    for (int i = 0; i < 100000; i++) {
        uint8_t hot[ML_EVENT_HOT_MAX_BYTES] = {0};
        uint8_t plain[128] = {0};
        struct ml_event event;
        random_event(&event, &time);
        struct ml_writer w = ml_writer_into(plain, sizeof(plain));
        ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_OK);
        const uint8_t *end = put(hot, &inline_state, &event);
        ck_assert_uint_eq((size_t)(end - hot), ml_writer_count(&w));
        ck_assert_mem_eq(hot, plain, ml_writer_count(&w));
        ck_assert(same_state(&inline_state, &state));
    }
}
END_TEST

/* The ways for short numbers, against the one byte by byte. */
START_TEST(numbers_are_the_same_by_every_way) {
    for (uint64_t i = 0; i < 1 << 15; i++) {
        /* All short ones, and those around where another byte begins. */
        const uint64_t values[] = {i, (i << 14) - i % 3, (i << 28) - i % 3, (i << 49) - i % 3};
        for (uint32_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
            uint8_t by_bytes[ML_VARINT_MAX_BYTES];
            uint8_t by_two[ML_VARINT_MAX_BYTES];
            uint8_t by_four[ML_VARINT_MAX_BYTES];
            const size_t count = (size_t)(ml_put_varint_bytes(by_bytes, values[v]) - by_bytes);
            ck_assert_uint_eq((size_t)(ml_put_varint_small(by_two, values[v]) - by_two), count);
            ck_assert_uint_eq((size_t)(ml_put_varint(by_four, values[v]) - by_four), count);
            ck_assert_mem_eq(by_two, by_bytes, count);
            ck_assert_mem_eq(by_four, by_bytes, count);
        }
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("event_put");
    tcase_add_test(tcase, both_encoders_write_the_same_bytes);
    tcase_add_test(tcase, numbers_are_the_same_by_every_way);
    return run_suite("ipc/event_put", tcase);
}
