#include "tools/analyzer/memory/rows.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/suite.h"

enum { KIB = 1024, PROCESSES = 2, REGIONS = 4, FILE_INODE = 77 };

static struct ml_profile profile;
static struct ml_stacks stacks;
static struct ml_sharing sharing;
static struct ml_rows rows;

static struct ml_profile_region region_of(uint64_t start, const char *name, uint64_t inode) {
    return (struct ml_profile_region
    ){.start = start,
      .end = start + 100 * KIB,
      .permissions = MEMLOG_SERVICE_MEMORY_PERMISSION_READ,
      .inode = inode,
      .name = {.bytes = name, .count_bytes = strlen(name)},
      .size_kb = 100,
      .resident_kb = 60,
      .private_dirty_kb = 40,
      .shared_clean_kb = 20,
      .proportional_kb = 50};
}

/* Two processes that map one file; the first has a heap, and a mapping by its only stack. */
static void setup(void) {
    profile = (struct ml_profile){.processes_count = PROCESSES};
    profile.processes = calloc(PROCESSES, sizeof profile.processes[0]);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        struct ml_profile_process *process = &profile.processes[i];
        process->id = i + 1;
        process->heap_was_laid = true;
        process->regions = calloc(REGIONS, sizeof process->regions[0]);
        process->regions[process->regions_count++] =
            region_of(0x10000, "/usr/lib/libx.so", FILE_INODE);
    }
    struct ml_profile_process *first = &profile.processes[0];
    first->regions[first->regions_count++] = region_of(0x100000, "[heap]", 0);
    first->regions[first->regions_count++] = region_of(0x200000, "[anon:arena]", 0);
    first->regions[first->regions_count++] = region_of(0x300000, "/lone", FILE_INODE + 1);
    first->regions[1].heap_blocks = 1;
    first->regions[1].heap_private_bytes = 5 * KIB;
    first->regions[1].heap_pages_private_bytes = 8 * KIB;
    first->nodes = calloc(1, sizeof first->nodes[0]);
    first->nodes[0] = (struct ml_profile_node){.id = 9, .frame = ML_FRAME_CUT};
    first->nodes_count = 1;
    first->cells = calloc(2, sizeof first->cells[0]);
    first->cells[0] = (struct ml_profile_cell){.node = 9, .resident_private_bytes = 3 * KIB};
    first->cells[1] =
        (struct ml_profile_cell){.node = 9, .size_class = 2, .resident_private_bytes = 1 * KIB};
    first->cells_count = 2;
    first->cells_were_laid = true;
    first->holdings = calloc(1, sizeof first->holdings[0]);
    first->holdings[0] = (struct ml_profile_region_holding
    ){.region = 2, .node = 9, .mapped_bytes = 8 * KIB, .private_bytes = 8 * KIB};
    first->holdings_count = 1;
    ck_assert_int_eq(ml_stacks_init(&stacks, &profile), ML_OK);
    for (size_t i = 0; i < PROCESSES; i++) {
        ck_assert(ml_sharing_add(&sharing, &profile.processes[i]));
    }
    ml_sharing_finish(&sharing);
    ck_assert(ml_rows_add(&rows, &stacks, &sharing, first));
}

static void teardown(void) {
    ml_rows_fini(&rows);
    ml_sharing_fini(&sharing);
    ml_stacks_fini(&stacks);
    ml_profile_fini(&profile);
}

static const struct ml_row *
find(enum ml_row_allocator allocator, enum ml_component kind, enum ml_row_sharing shared_with) {
    for (size_t i = 0; i < rows.count; i++) {
        const struct ml_row *row = &rows.items[i];
        if (row->allocator == allocator && row->kind == kind && row->sharing == shared_with) {
            return row;
        }
    }
    ck_abort_msg("no such row");
}

START_TEST(the_rows_add_up_to_the_kernels_figures) {
    struct ml_component_figures sum = {0};

    for (size_t i = 0; i < rows.count; i++) {
        sum.private += rows.items[i].figures.private;
        sum.shared += rows.items[i].figures.shared;
        sum.proportional += rows.items[i].figures.proportional;
    }
    ck_assert_uint_eq(sum.private, 4 * 40 * KIB);
    ck_assert_uint_eq(sum.shared, 4 * 20 * KIB);
    ck_assert_uint_eq(sum.proportional, 4 * 50 * KIB);
    ck_assert_uint_eq(rows.all.proportional, 4 * 50 * KIB);
    ck_assert_int_eq(rows.moved, 0);
}
END_TEST

START_TEST(live_blocks_and_slack_are_the_allocators) {
    /* Of 5 KiB the cells tell 4. */
    const struct ml_row *heap = find(ML_ROW_MALLOC, ML_COMPONENT_HEAP, ML_ROW_PRIVATE);
    ck_assert_uint_eq(heap[0].node, 0);
    ck_assert_uint_eq(heap[0].figures.private, 4 * KIB);
    ck_assert_uint_eq(heap[1].node, ML_STACKS_NONE);
    ck_assert_uint_eq(heap[1].figures.private, 1 * KIB);
    ck_assert_uint_eq(
        find(ML_ROW_SLACK, ML_COMPONENT_SLACK, ML_ROW_PRIVATE)->figures.private, 35 * KIB
    );
}
END_TEST

/* Cells of one stack with two types; the profile owns the arrays. */
START_TEST(live_blocks_of_each_type_are_a_row) {
    static const struct ml_profile_text box = {.bytes = "Box", .count_bytes = 3};
    struct ml_profile_process *first = &profile.processes[0];

    first->strings = calloc(1, sizeof first->strings[0]);
    first->strings[0] = box;
    first->strings_count = 1;
    first->types = calloc(1, sizeof first->types[0]);
    first->types[0] = (struct ml_profile_type){.id = 5, .string = 0};
    first->types_count = 1;
    first->cells[1].type = 5;
    ml_rows_fini(&rows);
    ck_assert(ml_rows_add(&rows, &stacks, &sharing, first));
    const struct ml_row *heap = find(ML_ROW_MALLOC, ML_COMPONENT_HEAP, ML_ROW_PRIVATE);
    ck_assert_str_eq(heap[0].type.bytes, "");
    ck_assert_uint_eq(heap[0].figures.private, 3 * KIB);
    ck_assert_str_eq(heap[1].type.bytes, "Box");
    ck_assert_uint_eq(heap[1].figures.private, 1 * KIB);
    ck_assert_str_eq(heap[2].type.bytes, "");
    ck_assert_uint_eq(heap[2].figures.private, 1 * KIB);
}
END_TEST

START_TEST(a_mapping_has_its_stack_and_the_name_that_the_program_gave) {
    const struct ml_row *row = find(ML_ROW_MMAP, ML_COMPONENT_MAPPED, ML_ROW_PRIVATE);

    ck_assert_uint_eq(row->figures.private, 8 * KIB);
    ck_assert_uint_eq(row->node, 0);
    ck_assert_uint_eq(row->name.count_bytes, 5);
    ck_assert_mem_eq(row->name.bytes, "arena", 5);
}
END_TEST

START_TEST(a_file_is_shared_with_the_group_or_with_others) {
    const struct ml_row *group = find(ML_ROW_UNHOOKED, ML_COMPONENT_FILES, ML_ROW_GROUP);
    const struct ml_row *others = find(ML_ROW_UNHOOKED, ML_COMPONENT_FILES, ML_ROW_OTHERS);

    ck_assert_str_eq(group->path.bytes, "/usr/lib/libx.so");
    ck_assert_uint_eq(group->figures.shared, 20 * KIB);
    ck_assert_uint_eq(group->figures.proportional, 10 * KIB);
    ck_assert_str_eq(others->path.bytes, "/lone");
}
END_TEST

START_TEST(a_child_has_its_parents_stack_for_what_it_inherited) {
    struct ml_profile_process *parent = &profile.processes[0];
    struct ml_profile_process *child = &profile.processes[1];
    struct ml_profile_region_holding holding = {.region = 0, .mapped_bytes = 100 * KIB};

    /* The parent mapped the file with a stack; the child has the mapping alone. */
    parent->holdings[0].region = 0;
    child->holdings = malloc(sizeof holding);
    child->holdings[0] = holding;
    child->holdings_count = 1;
    ml_sharing_fini(&sharing);
    for (size_t i = PROCESSES; i > 0; i--) {
        ck_assert(ml_sharing_add(&sharing, &profile.processes[i - 1]));
    }
    ml_sharing_finish(&sharing);
    ml_rows_fini(&rows);
    ck_assert(ml_rows_add(&rows, &stacks, &sharing, child));
    ck_assert_uint_eq(find(ML_ROW_MMAP, ML_COMPONENT_FILES, ML_ROW_PRIVATE)->node, 0);
}
END_TEST

/* The child with a mapping of its parent's at the same address, where that has `stacks` of them. */
static void fork_child(const char *exe, uint32_t second_node) {
    struct ml_profile_process *parent = &profile.processes[0];
    struct ml_profile_process *child = &profile.processes[1];

    child->parent_id = parent->id;
    parent->exe_path = (struct ml_profile_text){.bytes = "/bin/a", .count_bytes = 6};
    child->exe_path = (struct ml_profile_text){.bytes = exe, .count_bytes = strlen(exe)};
    child->regions[child->regions_count++] = region_of(0x200000, "", 0);
    child->holdings = calloc(1, sizeof child->holdings[0]);
    child->holdings[0] = (struct ml_profile_region_holding
    ){.region = 1, .mapped_bytes = 8 * KIB, .private_bytes = 8 * KIB};
    child->holdings_count = 1;
    parent->holdings = realloc(parent->holdings, 2 * sizeof parent->holdings[0]);
    parent->holdings[1] = parent->holdings[0];
    parent->holdings[1].node = second_node;
    parent->holdings_count = 2;
    ml_rows_fini(&rows);
    ck_assert(ml_rows_add(&rows, &stacks, &sharing, child));
}

START_TEST(a_forked_child_has_its_parents_stack_where_that_is_the_only_one) {
    fork_child("/bin/a", 9);
    ck_assert_uint_eq(find(ML_ROW_MMAP, ML_COMPONENT_MAPPED, ML_ROW_PRIVATE)->node, 0);
}
END_TEST

START_TEST(of_several_stacks_none_is_chosen) {
    fork_child("/bin/a", 8);
    ck_assert_uint_eq(find(ML_ROW_MMAP, ML_COMPONENT_MAPPED, ML_ROW_PRIVATE)->node, ML_STACKS_NONE);
}
END_TEST

START_TEST(another_program_inherits_nothing) {
    fork_child("/bin/b", 9);
    ck_assert_uint_eq(find(ML_ROW_MMAP, ML_COMPONENT_MAPPED, ML_ROW_PRIVATE)->node, ML_STACKS_NONE);
}
END_TEST

START_TEST(what_others_hold_of_a_tree_is_what_no_member_is_charged) {
    const struct ml_sharing_member *first = NULL;

    ck_assert_uint_eq(ml_sharing_find(&sharing, &profile.processes[1].regions[0], &first), 2);
    ck_assert_uint_eq(first->process->id, 1);
    ck_assert_uint_eq(ml_sharing_find(&sharing, &profile.processes[0].regions[1], &first), 0);
    /* Of the common file two members are charged 50 KiB each of 60, of the other one 50. */
    ck_assert_uint_eq(ml_sharing_held_by_others(&sharing), 10 * KIB);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("rows");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, the_rows_add_up_to_the_kernels_figures);
    tcase_add_test(cases, live_blocks_and_slack_are_the_allocators);
    tcase_add_test(cases, live_blocks_of_each_type_are_a_row);
    tcase_add_test(cases, a_mapping_has_its_stack_and_the_name_that_the_program_gave);
    tcase_add_test(cases, a_file_is_shared_with_the_group_or_with_others);
    tcase_add_test(cases, a_child_has_its_parents_stack_for_what_it_inherited);
    tcase_add_test(cases, a_forked_child_has_its_parents_stack_where_that_is_the_only_one);
    tcase_add_test(cases, of_several_stacks_none_is_chosen);
    tcase_add_test(cases, another_program_inherits_nothing);
    tcase_add_test(cases, what_others_hold_of_a_tree_is_what_no_member_is_charged);
    return run_suite("rows", cases);
}
