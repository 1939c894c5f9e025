#include "tools/analyzer/stacks/regroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "ipc/wire/event.h"
#include "tests/suite.h"

/* Two processes with the same stacks. Cells of malloc have types; the first process alone has the
 * heap "pool", and both have "shared", by different numbers. */
enum { NODES = 6, CELLS = 8, WORDS = 8, POOL = 3, SHARED = 4, NODE = 2, EDGE = 9 };
enum { MAIN = 1, SERVE, PARSE, READ, ROOT_SCOPE, ALONE };

static struct ml_profile profile;
static struct ml_profile_process processes[2];
static struct ml_profile_text words[WORDS];
static struct ml_profile_node nodes[NODES];
static struct ml_profile_type types[2];
static struct ml_profile_heap heaps[2][2];
static struct ml_profile_cell cells[2][CELLS];
static struct ml_stacks stacks;
static char line[256];

static void cell_put(size_t process, uint32_t node, uint16_t heap, uint16_t type, uint64_t bytes) {
    struct ml_profile_process *one = &processes[process];
    struct ml_profile_cell *cell = &cells[process][one->cells_count + one->apart_count];

    *cell = (struct ml_profile_cell
    ){.node = node,
      .heap = heap,
      .type = type,
      .own =
          {.live_bytes = bytes,
           .live_blocks = 1,
           .peak_bytes = 10 * bytes,
           .peak_blocks = 2,
           .total_bytes = 100 * bytes,
           .total_blocks = 3},
      .tree_peak_bytes = heap == 0 ? 5 * bytes : 0,
      .tree_peak_blocks = heap == 0 ? 2 : 0,
      .temporary_blocks = 1};
    one->cells_count += heap == 0;
    one->apart_count += heap != 0;
    if (heap == 0) {
        ml_profile_totals_add(&one->totals, &cell->own);
    }
}

static void process_make(size_t number) {
    struct ml_profile_process *process = &processes[number];

    *process = (struct ml_profile_process
    ){.id = (uint32_t)number + 1,
      .pid = 100 + (uint32_t)number,
      .name = {.bytes = "p", .count_bytes = 1},
      .strings = words,
      .strings_count = WORDS,
      .nodes = nodes,
      .nodes_count = NODES,
      .types = types,
      .types_count = 2,
      .heaps = number == 0 ? heaps[0] : &heaps[1][1],
      .heaps_count = number == 0 ? 2 : 1,
      .cells = cells[number]};
    heaps[number][0] = (struct ml_profile_heap){.id = POOL, .string = 6};
    heaps[number][1] = (struct ml_profile_heap){.id = number == 0 ? SHARED : POOL, .string = 7};
    cell_put(number, PARSE, 0, NODE, 1);
    cell_put(number, PARSE, 0, EDGE, 2);
    cell_put(number, READ, 0, NODE, 4);
    cell_put(number, READ, 0, 0, 8);
    cell_put(number, 0, 0, EDGE, 16);
    cell_put(number, ALONE, number == 0 ? SHARED : POOL, 0, 32);
    if (number == 0) {
        cell_put(number, PARSE, POOL, NODE, 64);
        cell_put(number, PARSE, POOL, NODE, 128);
    }
}

/* {root}main; main;{serve}parse; main;{serve}read; {root}. */
static void setup(void) {
    static const char *const texts[WORDS] = {
        "", "main", "serve", "parse", "Node", "Edge", "pool", "shared"};

    for (size_t i = 0; i < WORDS; i++) {
        words[i] = (struct ml_profile_text){.bytes = texts[i], .count_bytes = strlen(texts[i])};
    }
    nodes[0] = (struct ml_profile_node){.id = MAIN, .frame = ML_FRAME_SCRIPT, .string = 1};
    nodes[1] =
        (struct ml_profile_node){.id = SERVE, .parent = MAIN, .frame = ML_FRAME_SCOPE, .string = 2};
    nodes[2] = (struct ml_profile_node
    ){.id = PARSE, .parent = SERVE, .frame = ML_FRAME_SCRIPT, .string = 3};
    nodes[3] =
        (struct ml_profile_node){.id = READ, .parent = MAIN, .frame = ML_FRAME_SCRIPT, .string = 3};
    nodes[4] = (struct ml_profile_node){.id = ROOT_SCOPE, .frame = ML_FRAME_SCOPE, .string = 6};
    nodes[5] = (struct ml_profile_node
    ){.id = ALONE, .parent = ROOT_SCOPE, .frame = ML_FRAME_SCOPE, .string = 2};
    types[0] = (struct ml_profile_type){.id = NODE, .string = 4};
    types[1] = (struct ml_profile_type){.id = EDGE, .string = 5};
    process_make(0);
    process_make(1);
    profile = (struct ml_profile){.processes = processes, .processes_count = 2};
    ck_assert_int_eq(ml_stacks_init(&stacks, &profile), ML_OK);
}

static void teardown(void) {
    ml_stacks_fini(&stacks);
}

/* The stack's frames, outermost first. */
static const char *frames_of(uint32_t node) {
    char rest[sizeof line];
    char buffer[ML_PLACE_NAME_BYTES];

    line[0] = '\0';
    for (; node != ML_STACKS_NONE; node = stacks.nodes[node].parent) {
        snprintf(rest, sizeof rest, "%s", line);
        snprintf(
            line,
            sizeof line,
            "%s%s%.100s",
            ml_place_name(&stacks.places[stacks.nodes[node].place], buffer),
            rest[0] ? ";" : "",
            rest
        );
    }
    return line;
}

static const struct ml_stack *stack_of(const struct ml_stack_list *list, const char *frames) {
    const struct ml_stack *found = NULL;

    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(frames_of(list->stacks[i].node), frames) == 0) {
            ck_assert_msg(!found, "%s is there twice", frames);
            found = &list->stacks[i];
        }
    }
    ck_assert_msg(found, "%s is missing", frames);
    return found;
}

/* That stack of the tree has so many live bytes, and all other figures with them. */
static void check_stack(const char *frames, uint64_t live, uint64_t peak) {
    const struct ml_stack *stack = stack_of(&stacks.tree, frames);

    ck_assert_uint_eq(stack->own.live_bytes, live);
    ck_assert_uint_eq(stack->own.peak_bytes, peak);
    ck_assert_uint_eq(stack->own.total_bytes, 100 * live);
}

static struct ml_profile_totals sum_of(const struct ml_stack_list *list) {
    struct ml_profile_totals sum = {0};

    for (size_t i = 0; i < list->count; i++) {
        ml_profile_totals_add(&sum, &list->stacks[i].own);
    }
    return sum;
}

static void regroup(enum ml_grouping grouping, size_t count) {
    ck_assert_int_eq(ml_stacks_regroup(&stacks, grouping), ML_OK);
    ck_assert_uint_eq(stacks.tree.count, count);
}

START_TEST(types_stand_outside_of_functions) {
    regroup(ML_GROUP_TYPE, 5);
    check_stack("Node;main;serve;parse", 2, 10);
    check_stack("Edge;main;serve;parse", 4, 20);
    check_stack("Node;main;parse", 8, 40);
    check_stack("[no type];main;parse", 16, 80);
    check_stack("Edge", 32, 160);
}
END_TEST

START_TEST(types_stand_inside_of_functions) {
    regroup(ML_GROUP_BACKTRACE_TYPE, 5);
    check_stack("main;serve;parse;Node", 2, 10);
    check_stack("main;serve;parse;Edge", 4, 20);
    check_stack("main;parse;Node", 8, 40);
    check_stack("main;parse;[no type]", 16, 80);
    check_stack("[no stack];Edge", 32, 160);
}
END_TEST

/* The peak of a heap that one process has is its own; one of several has its share of the tree's.
 */
START_TEST(heaps_stand_beside_each_other) {
    regroup(ML_GROUP_HEAP, 5);
    check_stack("malloc;main;serve;parse", 6, 30);
    check_stack("malloc;main;parse", 24, 120);
    check_stack("malloc", 32, 160);
    check_stack("shared;pool;serve", 64, 0);
    check_stack("pool;main;serve;parse", 192, 1920);
}
END_TEST

START_TEST(heaps_stand_inside_of_functions) {
    regroup(ML_GROUP_BACKTRACE_HEAP, 5);
    check_stack("main;serve;parse;malloc", 6, 30);
    check_stack("main;serve;parse;pool", 192, 1920);
    check_stack("pool;serve;shared", 64, 0);
}
END_TEST

START_TEST(types_stand_inside_of_heaps) {
    regroup(ML_GROUP_HEAP_TYPE, 7);
    check_stack("malloc;Node;main;serve;parse", 2, 10);
    check_stack("malloc;Edge", 32, 160);
    check_stack("pool;Node;main;serve;parse", 192, 1920);
    check_stack("shared;[no type];pool;serve", 64, 0);
}
END_TEST

START_TEST(scopes_stand_outside_of_functions) {
    regroup(ML_GROUP_SCOPE, 3);
    check_stack("serve;main;parse", 6, 30);
    check_stack("[no scope];main;parse", 24, 120);
    check_stack("[no scope]", 32, 160);
}
END_TEST

START_TEST(scopes_stand_inside_of_functions) {
    regroup(ML_GROUP_BACKTRACE_SCOPE, 3);
    check_stack("main;parse;serve", 6, 30);
    check_stack("main;parse;[no scope]", 24, 120);
    check_stack("[no stack];[no scope]", 32, 160);
}
END_TEST

/* Every figure of the tree and of each process stays, whatever the order. */
START_TEST(sums_stay) {
    const enum ml_grouping grouping = (enum ml_grouping)_i;
    const bool has_heaps = strstr(ml_grouping_words[_i - 1], "heap") != NULL;
    struct ml_profile_totals before[3] = {
        sum_of(&stacks.tree), sum_of(&stacks.processes[0]), sum_of(&stacks.processes[1])};

    ck_assert_uint_eq(before[0].live_bytes, 62);
    ck_assert_uint_eq(before[0].peak_bytes, 5 * 62);
    for (size_t p = 0; has_heaps && p < 2; p++) {
        for (size_t c = 0; c < processes[p].apart_count; c++) {
            const struct ml_profile_cell *cell = &cells[p][processes[p].cells_count + c];
            struct ml_profile_totals of_tree = cell->own;
            ml_profile_totals_add(&before[1 + p], &cell->own);
            if (strcmp(ml_profile_heap_name(&processes[p], cell->heap).bytes, "shared") == 0) {
                of_tree.peak_bytes = of_tree.peak_blocks = 0;
            }
            ml_profile_totals_add(&before[0], &of_tree);
        }
    }
    ck_assert_int_eq(ml_stacks_regroup(&stacks, grouping), ML_OK);
    const struct ml_profile_totals after[3] = {
        sum_of(&stacks.tree), sum_of(&stacks.processes[0]), sum_of(&stacks.processes[1])};
    ck_assert_mem_eq(after, before, sizeof after);
}
END_TEST

START_TEST(nothing_changes_without_an_order) {
    const size_t nodes_count = stacks.nodes_count;

    regroup(ML_GROUP_NONE, 3);
    ck_assert_uint_eq(stacks.nodes_count, nodes_count);
    check_stack("main;serve;parse", 6, 30);
}
END_TEST

/* Callers stand before their callees, and no node is there that no list needs. */
START_TEST(nodes_stay_in_order) {
    regroup(ML_GROUP_HEAP_TYPE, 7);
    for (size_t i = 0; i < stacks.nodes_count; i++) {
        ck_assert(stacks.nodes[i].parent == ML_STACKS_NONE || stacks.nodes[i].parent < i);
    }
    /* malloc: Node 1 + 3 + 1 more, Edge 1 + 3, [no type] 1 + 2, itself; pool 1 + 4; shared 1 + 3.
     */
    ck_assert_uint_eq(stacks.nodes_count, 1 + 5 + 4 + 3 + 5 + 4);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("regroup");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, types_stand_outside_of_functions);
    tcase_add_test(tcase, types_stand_inside_of_functions);
    tcase_add_test(tcase, heaps_stand_beside_each_other);
    tcase_add_test(tcase, heaps_stand_inside_of_functions);
    tcase_add_test(tcase, types_stand_inside_of_heaps);
    tcase_add_test(tcase, scopes_stand_outside_of_functions);
    tcase_add_test(tcase, scopes_stand_inside_of_functions);
    tcase_add_loop_test(tcase, sums_stay, ML_GROUP_TYPE, ML_GROUP_BACKTRACE_SCOPE + 1);
    tcase_add_test(tcase, nothing_changes_without_an_order);
    tcase_add_test(tcase, nodes_stay_in_order);
    return run_suite("regroup", tcase);
}
