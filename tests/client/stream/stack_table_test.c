#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <check.h>

#include "tests/suite.h"

#include "client/stream/stack_table.h"

enum {
    NODES_MAX = 1 << 20,
    LANE_BYTES = 64 << 20,
    ARENA_BYTES = 16 << 20,
    THREADS = 4,
    HUB_CHILDREN = 20000, /* the hash table doubles twice */
    PATHS = 4000,
    DEPTH = 40
};

/* A process with a stack table and nothing else, and lanes whose chunk never ends. */
static struct ml_gate_page page;
static struct ml_staging_header header;
static struct ml_staging_lane lane_headers[THREADS];
static struct ml_lane *lanes[THREADS];

/* What the lanes say of a node. */
struct said {
    uint64_t key;
    uint32_t parent;
    uint32_t times;
};
static struct said *nodes;

static void *pages(size_t bytes) {
    void *memory = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0
    );
    ck_assert(memory != MAP_FAILED);
    return memory;
}

static void begin_lane(struct ml_lane *lane, uint32_t profile) {
    lane->pos = lane->start;
    lane->limit = lane->start + LANE_BYTES - ML_EVENT_HOT_MAX_BYTES;
    lane->state = (struct ml_event_state){0};
    lane->tag = ml_stack_tag(profile);
    lane->profile = profile;
}

static void set_up(void) {
    memset(&page, 0, sizeof(page));
    page.table_shift = ML_TABLE_SHIFT_MIN;
    ml_process.gate_page = &page;
    ml_process.staging = (uint8_t *)&header;
    ml_process.nodes_max = NODES_MAX;
    ml_process.memory = (struct ml_memory){0}; /* what is mapped is all there is */
    ml_process.memory.arena.start = pages(ARENA_BYTES);
    ml_process.memory.arena.mapped_bytes = ARENA_BYTES;
    ml_process.stack_nodes =
        pages((NODES_MAX + ML_STACK_BLOCK_NODES) * sizeof(struct ml_table_node));
    nodes = pages(NODES_MAX * sizeof(*nodes));
    for (uint32_t i = 0; i < THREADS; i++) {
        lanes[i] = pages(sizeof(*lanes[i]));
        lanes[i]->header = &lane_headers[i];
        lanes[i]->start = pages(LANE_BYTES);
        begin_lane(lanes[i], 0);
    }
}

/* Read what a lane has said since its profile began. */
static void read_lane(const struct ml_lane *lane) {
    struct ml_reader r = ml_reader_over(lane->start, (size_t)(lane->pos - lane->start));
    struct ml_event_state state = {0};
    while (ml_reader_left(&r) > 0) {
        struct ml_event event;
        ck_assert_int_eq(ml_event_decode(&r, &state, &event), ML_OK);
        ck_assert_int_eq(event.kind, ML_EVENT_NODE);
        ck_assert_uint_lt(event.node.parent, event.node.id);
        struct said *said = &nodes[event.node.id];
        said->key = event.node.address;
        said->parent = event.node.parent;
        said->times++;
    }
}

static uint64_t address_of(uint64_t path, uint32_t depth) {
    /* Few calls lead to few: paths share their beginnings. */
    const uint64_t bits = path * UINT64_C(0x9e3779b97f4a7c15) >> (63 - depth % 12);
    return UINT64_C(0x400000) + (depth == 0 ? 1 : (uint64_t)depth * 4096 + bits % 5);
}

static uint32_t descend(struct ml_lane *lane, uint64_t path) {
    uint32_t node = 0;
    for (uint32_t depth = 0; depth < DEPTH; depth++) {
        node = ml_stack_child(lane, node, address_of(path, depth), 0);
        ck_assert_uint_ne(node, 0);
    }
    return node;
}

/* Is that node, by what the lanes said, this path? */
static void assert_path(uint32_t node, uint64_t path) {
    for (uint32_t depth = DEPTH; depth-- > 0;) {
        ck_assert_uint_ge(nodes[node].times, 1);
        ck_assert_uint_eq(nodes[node].key, address_of(path, depth));
        node = nodes[node].parent;
    }
    ck_assert_uint_eq(node, 0);
}

START_TEST(gives_each_path_one_node_and_defines_it_once) {
    static uint32_t first[PATHS];
    set_up();
    for (uint64_t path = 0; path < PATHS; path++) {
        first[path] = descend(lanes[0], path);
    }
    const uint32_t count = page.node_count;
    for (uint64_t path = PATHS; path-- > 0;) {
        ck_assert_uint_eq(descend(lanes[0], path), first[path]);
    }
    ck_assert_uint_eq(page.node_count, count);
    read_lane(lanes[0]);
    for (uint64_t path = 0; path < PATHS; path++) {
        assert_path(first[path], path);
    }
    for (uint32_t id = 1; id <= count; id++) {
        ck_assert_uint_eq(nodes[id].times, 1);
    }
}
END_TEST

START_TEST(finds_all_children_of_a_node_with_very_many) {
    static uint32_t child[HUB_CHILDREN];
    set_up();
    const uint32_t hub = ml_stack_child(lanes[0], 0, 0x1000, 0);
    for (uint32_t i = 0; i < HUB_CHILDREN; i++) {
        child[i] = ml_stack_child(lanes[0], hub, 0x2000 + i, 0);
        ck_assert_uint_ne(ml_stack_child(lanes[0], child[i], 0x90000 + i, 0), 0);
    }
    ck_assert_uint_gt(page.table_shift, ML_TABLE_SHIFT_MIN);
    ck_assert_uint_eq(page.node_count, 1 + 2 * HUB_CHILDREN);
    for (uint32_t i = 0; i < HUB_CHILDREN; i++) {
        ck_assert_uint_eq(ml_stack_child(lanes[0], hub, 0x2000 + i, 0), child[i]);
    }
    ck_assert_uint_eq(page.node_count, 1 + 2 * HUB_CHILDREN);
}
END_TEST

static uint32_t found[THREADS][PATHS];

static void *look_up_all(void *context) {
    const size_t thread = (size_t)context;
    for (uint64_t path = 0; path < PATHS; path++) {
        /* Each begins elsewhere, then they meet. */
        const uint64_t at = (path + thread * 17) % PATHS;
        found[thread][at] = descend(lanes[thread], at);
    }
    return NULL;
}

START_TEST(threads_that_meet_define_true_nodes) {
    pthread_t threads[THREADS];
    set_up();
    for (size_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, look_up_all, (void *)i), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        read_lane(lanes[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        for (uint64_t path = 0; path < PATHS; path++) {
            assert_path(found[i][path], path);
            ck_assert(ml_stack_same_path(found[i][path], found[0][path]));
        }
    }
    ck_assert(!ml_stack_same_path(found[0][0], nodes[found[0][0]].parent));
    for (uint32_t id = 1; id <= page.node_count; id++) {
        ck_assert_uint_eq(nodes[id].times, 1);
    }
}
END_TEST

START_TEST(defines_what_it_meets_again_in_a_new_profile) {
    set_up();
    for (uint64_t path = 0; path < PATHS; path++) {
        (void)descend(lanes[0], path);
    }
    const uint32_t count = page.node_count;
    begin_lane(lanes[0], 1);
    const uint32_t node = descend(lanes[0], 1234);
    read_lane(lanes[0]);
    assert_path(node, 1234);
    ck_assert_uint_le(page.node_count, count + 1); /* the root's first child is not looked for */
}
END_TEST

START_TEST(a_full_table_answers_0_and_counts) {
    set_up();
    header.lost_no_node = 0;
    ml_process.nodes_max = 1024;
    uint32_t node = 0;
    for (uint32_t i = 0; i < 1023; i++) {
        node = ml_stack_child(lanes[0], node, 0x1000 + i, 0);
        ck_assert_uint_ne(node, 0);
    }
    ck_assert_uint_eq(ml_stack_child(lanes[0], node, 0x7000, 0), 0);
    ck_assert_uint_eq(header.lost_no_node, 1);
    ck_assert_uint_eq(ml_stack_child(lanes[0], 0, 0x1000, 0), 1);
}
END_TEST

/* Paths below one node, more than the first table and the nodes beside have room for. */
START_TEST(a_table_that_cannot_grow_keeps_what_it_has_and_counts_the_rest) {
    set_up();
    header.lost_no_node = 0;
    ml_process.memory.arena.mapped_bytes = sizeof(uint32_t) << ML_TABLE_SHIFT_MIN;
    enum { MANY = 50000 };
    static uint32_t child[MANY];
    const uint32_t hub = ml_stack_child(lanes[0], 0, 0x1000, 0);
    uint32_t in_table = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        child[i] = ml_stack_child(lanes[0], hub, 0x2000 + i, 0);
        in_table += child[i] != 0;
    }
    ck_assert_uint_ge(in_table, (1 << ML_TABLE_SHIFT_MIN) / 2);
    ck_assert_uint_lt(in_table, 1 << ML_TABLE_SHIFT_MIN);
    ck_assert_uint_eq(header.lost_no_node, MANY - in_table);
    ck_assert_uint_le(page.node_count, in_table + 2);
    for (uint32_t i = 0; i < MANY; i++) {
        ck_assert(child[i] == 0 || ml_stack_child(lanes[0], hub, 0x2000 + i, 0) == child[i]);
    }
    read_lane(lanes[0]);
}
END_TEST

/* Its thread has been interrupted for good. */
START_TEST(a_table_that_somebody_is_copying_goes_on_to_take_nodes) {
    set_up();
    header.lost_no_node = 0;
    page.table_growing = ML_TABLE_SHIFT_MIN;
    enum { MANY = 30000 };
    const uint32_t hub = ml_stack_child(lanes[0], 0, 0x1000, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        ck_assert_uint_ne(ml_stack_child(lanes[0], hub, 0x2000 + i, 0), 0);
    }
    ck_assert_uint_eq(header.lost_no_node, 0);
    ck_assert_uint_le(page.node_count, MANY + 10);
    read_lane(lanes[0]);
    for (uint32_t id = 2; id <= page.node_count; id++) {
        ck_assert_uint_eq(nodes[id].times, 1);
        ck_assert_uint_eq(nodes[id].parent, hub);
    }
    page.table_growing = 0;
    (void)ml_stack_child(lanes[0], hub, 0x2000 + MANY, 0);
    ck_assert_uint_gt(page.table_shift, ML_TABLE_SHIFT_MIN);
}
END_TEST

/* Limits change. */
START_TEST(a_table_that_could_not_grow_grows_later) {
    set_up();
    header.lost_no_node = 0;
    ml_process.memory.arena.mapped_bytes = sizeof(uint32_t) << ML_TABLE_SHIFT_MIN;
    const uint32_t hub = ml_stack_child(lanes[0], 0, 0x1000, 0);
    uint32_t i = 0;
    while (header.lost_no_node == 0) {
        (void)ml_stack_child(lanes[0], hub, 0x2000 + i++, 0);
    }
    ml_process.memory.arena.mapped_bytes = ARENA_BYTES;
    for (uint32_t more = 0; more < 20000; more++) {
        ck_assert_uint_ne(ml_stack_child(lanes[0], hub, 0x2000 + i++, 0), 0);
    }
    ck_assert_uint_eq(header.lost_no_node, 1);
}
END_TEST

START_TEST(without_memory_for_any_table_nodes_beside_their_parents_remain) {
    set_up();
    header.lost_no_node = 0;
    ml_process.memory.arena.mapped_bytes = 0;
    const uint32_t hub = ml_stack_child(lanes[0], 0, 0x1000, 0);
    uint32_t in_table = 0;
    for (uint32_t i = 0; i < 100; i++) {
        in_table += ml_stack_child(lanes[0], hub, 0x2000 + i, 0) != 0;
    }
    ck_assert_uint_ge(in_table, ML_STACK_BLOCK_NODES);
    ck_assert_uint_eq(header.lost_no_node, 100 - in_table);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("stack_table");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, gives_each_path_one_node_and_defines_it_once);
    tcase_add_test(tcase, finds_all_children_of_a_node_with_very_many);
    tcase_add_test(tcase, threads_that_meet_define_true_nodes);
    tcase_add_test(tcase, defines_what_it_meets_again_in_a_new_profile);
    tcase_add_test(tcase, a_full_table_answers_0_and_counts);
    tcase_add_test(tcase, a_table_that_cannot_grow_keeps_what_it_has_and_counts_the_rest);
    tcase_add_test(tcase, a_table_that_somebody_is_copying_goes_on_to_take_nodes);
    tcase_add_test(tcase, a_table_that_could_not_grow_grows_later);
    tcase_add_test(tcase, without_memory_for_any_table_nodes_beside_their_parents_remain);
    return run_suite("client/stack_table", tcase);
}
