/* The frames and stacks of a dump, against those that a search through everything finds. */
#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"

#include "service/dump/frames.h"

enum { NODES = 6000, CELLS = 4000, HEAPS = 3 };

static struct ml_snapshot_node nodes[NODES];
static struct ml_snapshot_cell cells[CELLS];
static struct ml_snapshot_process process;
static const struct ml_dump_sink sink = {.rest = NULL};
static uint64_t state;

static uint32_t random_below(uint32_t end) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % end;
}

/* Nodes whose ids leave out up to `gap` numbers, of `addresses` different frames and their kin. */
static void make(uint64_t seed, uint32_t gap, uint32_t addresses) {
    state = seed;
    uint32_t id = random_below(1000) + 1;
    for (uint32_t i = 0; i < NODES; i++) {
        nodes[i] = (struct ml_snapshot_node
        ){.id = id,
          .parent = random_below(20) == 0 || i == 0 ? 0 : nodes[random_below(i)].id,
          .frame = random_below(40) == 0 ? 1 : 0,
          .module = random_below(3),
          .address = UINT64_C(0x7f0000000000) + random_below(addresses) * UINT64_C(4096),
          .string = random_below(50) == 0 ? 1 : 0};
        id += random_below(gap) + 1;
    }
    for (uint32_t i = 0; i < CELLS; i++) {
        cells[i] = (struct ml_snapshot_cell
        ){.node = random_below(100) == 0 ? random_below(id + 1000) : nodes[random_below(NODES)].id,
          .heap = (uint16_t)random_below(HEAPS),
          .own = {.live_bytes = i, .live_blocks = 1, .total_bytes = 3 * i, .total_blocks = 2}};
    }
    process = (struct ml_snapshot_process
    ){.nodes = nodes, .nodes_count = NODES, .cells = cells, .cells_count = CELLS};
}

static uint32_t naive_index(uint32_t id) {
    for (uint32_t i = 0; i < NODES; i++) {
        if (nodes[i].id == id) {
            return i;
        }
    }
    return ML_DUMP_NO_INDEX;
}

static int order(const struct ml_snapshot_node *a, const struct ml_snapshot_node *b) {
    const uint64_t left[] = {a->frame, a->module, a->address, a->string};
    const uint64_t right[] = {b->frame, b->module, b->address, b->string};
    for (int i = 0; i < 4; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return 0;
}

static void check_stacks(const struct ml_dump_frames *frames, uint16_t heap, bool *out_used) {
    static uint64_t live[NODES + 1];
    static uint64_t blocks[NODES + 1];
    uint32_t stacks = 0;
    for (uint32_t i = 0; i <= NODES; i++) {
        live[i] = 0;
        blocks[i] = 0;
    }
    for (uint32_t i = 0; i < CELLS; i++) {
        if (cells[i].heap == heap) {
            const uint32_t at = cells[i].node == 0 ? ML_DUMP_NO_INDEX : naive_index(cells[i].node);
            const uint32_t place = at == ML_DUMP_NO_INDEX ? NODES : at;
            stacks += blocks[place] == 0;
            live[place] += cells[i].own.live_bytes;
            blocks[place]++;
        }
    }
    ck_assert_uint_eq(frames->stacks_count, stacks);
    for (uint32_t i = 0; i < frames->stacks_count; i++) {
        const struct ml_dump_stack *stack = &frames->stacks[i];
        const uint32_t at = stack->node_index;
        ck_assert(i == 0 || at > frames->stacks[i - 1].node_index);
        const uint32_t place = at == ML_DUMP_NO_INDEX ? NODES : at;
        ck_assert_uint_eq(stack->live_bytes, live[place]);
        ck_assert_uint_eq(stack->total_blocks, 2 * blocks[place]);
        for (uint32_t up = at; up != ML_DUMP_NO_INDEX; up = frames->parent_index[up]) {
            out_used[up] = true;
        }
    }
}

static void check_heap(struct ml_dump_frames *frames, uint16_t heap) {
    static bool used[NODES];
    for (uint32_t i = 0; i < NODES; i++) {
        used[i] = false;
    }
    ck_assert_int_eq(ml_dump_frames_take(frames, heap), ML_OK);
    check_stacks(frames, heap, used);
    for (uint32_t i = 1; i < frames->frames_count; i++) {
        ck_assert_int_lt(
            order(&nodes[frames->frames[i - 1].node_index], &nodes[frames->frames[i].node_index]), 0
        );
    }
    for (uint32_t i = 0; i < NODES; i++) {
        ck_assert_int_eq(frames->frame[i] != 0, used[i]);
        if (used[i]) {
            ck_assert_uint_le(frames->frame[i], frames->frames_count);
            const uint32_t shown = frames->frames[frames->frame[i] - 1].node_index;
            ck_assert_int_eq(order(&nodes[i], &nodes[shown]), 0);
        }
    }
}

/* Ids one behind the other and far apart, one frame for all and one for each node. */
static const struct {
    uint32_t gap, addresses;
} shapes[] = {{1, 1}, {1, 200}, {2, 100000}, {17, 3000}, {300000, 50}, {600000, 100000}};

START_TEST(frames_are_numbered_once_and_in_order) {
    struct ml_dump_frames frames;
    make((uint64_t)_i + 1, shapes[_i].gap, shapes[_i].addresses);
    ck_assert_int_eq(ml_dump_frames_init(&frames, &process, &sink), ML_OK);
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t parent = nodes[i].parent;
        ck_assert_uint_eq(
            frames.parent_index[i], parent == 0 ? ML_DUMP_NO_INDEX : naive_index(parent)
        );
    }
    uint32_t from = 0;
    uint16_t heap = 0;
    uint32_t heaps = 0;
    while (ml_dump_frames_next_heap(&frames, from, &heap)) {
        check_heap(&frames, heap);
        from = heap + 1u;
        heaps++;
    }
    ck_assert_uint_eq(heaps, HEAPS);
    ml_dump_frames_fini(&frames);
}
END_TEST

START_TEST(nodes_out_of_order_or_without_their_parent_are_refused) {
    struct ml_dump_frames frames;
    make(7, 5, 100);
    nodes[NODES / 2].id = nodes[NODES / 2 - 1].id;
    ck_assert_int_eq(ml_dump_frames_init(&frames, &process, &sink), ML_BUG_CONTRACT);
    ml_dump_frames_fini(&frames);
    make(7, 5, 100);
    uint32_t i = 1;
    while (nodes[i].id == nodes[i - 1].id + 1) {
        i++;
    }
    nodes[i].parent = nodes[i].id - 1; /* which is nobody's */
    ck_assert_int_eq(ml_dump_frames_init(&frames, &process, &sink), ML_BUG_CONTRACT);
    ml_dump_frames_fini(&frames);
}
END_TEST

START_TEST(a_process_of_nothing_has_no_frames) {
    struct ml_dump_frames frames;
    uint16_t heap = 0;
    process = (struct ml_snapshot_process){.nodes_count = 0};
    ck_assert_int_eq(ml_dump_frames_init(&frames, &process, &sink), ML_OK);
    ck_assert(!ml_dump_frames_next_heap(&frames, 0, &heap));
    ck_assert_int_eq(ml_dump_frames_take(&frames, 0), ML_OK);
    ck_assert_uint_eq(frames.frames_count, 0);
    ml_dump_frames_fini(&frames);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("dump_frames");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(
        tcase, frames_are_numbered_once_and_in_order, 0, (int)(sizeof shapes / sizeof shapes[0])
    );
    tcase_add_test(tcase, nodes_out_of_order_or_without_their_parent_are_refused);
    tcase_add_test(tcase, a_process_of_nothing_has_no_frames);
    return run_suite("service/dump_frames", tcase);
}
