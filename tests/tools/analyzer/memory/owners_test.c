#include "tools/analyzer/memory/owners.h"

#include <string.h>

#include <check.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/suite.h"

enum {
    KIB = 1024,
    PLAIN = MEMLOG_SERVICE_MEMORY_PERMISSION_READ | MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE,
    CODE = MEMLOG_SERVICE_MEMORY_PERMISSION_READ | MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE
};

static struct ml_profile_region regions[2];
static struct ml_profile_region_holding holdings[4];
static struct ml_profile_process process;
static struct ml_component_figures of[ML_COMPONENTS];
static struct ml_component_figures sum;
static int64_t moved;

/* One mapping: 100 KiB, of which 40 are private, 20 shared (with one other), 8 swapped. */
static void setup(void) {
    memset(holdings, 0, sizeof holdings);
    memset(of, 0, sizeof of);
    sum = (struct ml_component_figures){0};
    for (size_t i = 0; i < 2; i++) {
        regions[i] = (struct ml_profile_region
        ){.start = 0x10000 + i * 0x100000,
          .end = 0x29000 + i * 0x100000,
          .permissions = PLAIN,
          .name = {.bytes = ""},
          .size_kb = 100,
          .resident_kb = 60,
          .private_dirty_kb = 40,
          .shared_dirty_kb = 20,
          .proportional_kb = 50,
          .swap_kb = 8};
    }
    process = (struct ml_profile_process
    ){.regions = regions, .regions_count = 1, .holdings = holdings, .heap_was_laid = true};
}

static void name_region(size_t region, const char *name, uint64_t inode) {
    regions[region].name = (struct ml_profile_text){.bytes = name, .count_bytes = strlen(name)};
    regions[region].inode = inode;
}

static struct ml_profile_region_holding *
hold(size_t region, enum ml_holding_kind kind, uint64_t private_kb, uint64_t shared_kb) {
    struct ml_profile_region_holding *holding = &holdings[process.holdings_count++];

    *holding = (struct ml_profile_region_holding
    ){.region = (uint32_t)region,
      .kind = kind,
      .mapped_bytes = 10 * KIB,
      .private_bytes = private_kb * KIB,
      .shared_bytes = shared_kb * KIB};
    return holding;
}

static void take(void *context, const struct ml_owned *owned) {
    (void)context;
    ml_component_figures_add(&of[owned->kind], &owned->figures);
    ml_component_figures_add(&sum, &owned->figures);
}

/* Visit, and hold the sum to the kernel's figures. */
static void visit(void) {
    const struct ml_owner_visitor visitor = {.take = take};
    struct ml_component_figures all = {0};

    moved = ml_owners_visit(&process, &visitor);
    for (size_t i = 0; i < process.regions_count; i++) {
        const struct ml_component_figures figures = ml_region_figures(&regions[i]);
        ml_component_figures_add(&all, &figures);
    }
    ck_assert_uint_eq(sum.private, all.private);
    ck_assert_uint_eq(sum.shared, all.shared);
    ck_assert_uint_eq(sum.proportional, all.proportional);
    ck_assert_uint_eq(sum.swapped, all.swapped);
}

START_TEST(what_nobody_is_known_to_hold_is_of_its_mapping) {
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 40 * KIB);
    ck_assert_int_eq(moved, 0);
}
END_TEST

START_TEST(a_mapping_is_divided_among_its_owners) {
    regions[0].heap_blocks = 3;
    regions[0].heap_private_bytes = 5 * KIB;
    regions[0].heap_pages_private_bytes = 8 * KIB;
    hold(0, ML_HOLDING_MAPPED, 4, 10);
    hold(0, ML_HOLDING_ALLOCATOR, 2, 0);
    hold(0, ML_HOLDING_STACK, 1, 0);
    hold(0, ML_HOLDING_MEMLOG, 16, 0);
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_HEAP].private, 5 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, (3 + 2 + 9) * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_STACK].private, 1 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_MEMLOG].private, 16 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].private, 4 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].shared, 10 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].proportional, (4 + 5) * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 0);
    ck_assert_int_eq(moved, 0);
}
END_TEST

START_TEST(what_a_forked_process_inherited_is_not_called_slack) {
    process.inherited_bytes = 100 * KIB;
    regions[0].heap_blocks = 3;
    regions[0].heap_private_bytes = 5 * KIB;
    regions[0].heap_pages_private_bytes = 8 * KIB;
    hold(0, ML_HOLDING_ALLOCATOR, 2, 0);
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_HEAP].private, 5 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, 0);
    ck_assert_uint_eq(of[ML_COMPONENT_INHERITED].private, (40 - 5) * KIB);
}
END_TEST

/* The first two mappings are an allocator's. What is shared is the parent's first. */
START_TEST(no_more_is_inherited_than_the_parents_blocks_can_take) {
    process.inherited_bytes = 49 * KIB;
    process.inherited_blocks = 32; /* which take 1 KiB more */
    process.regions_count = 2;
    hold(0, ML_HOLDING_ALLOCATOR, 40, 20)->mapped_bytes = 100 * KIB;
    hold(1, ML_HOLDING_ALLOCATOR, 40, 20)->mapped_bytes = 100 * KIB;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_INHERITED].shared, 20 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_INHERITED].private, 30 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].shared, 20 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, (80 - 30) * KIB);
}
END_TEST

START_TEST(no_number_of_inherited_blocks_overflows) {
    process.inherited_bytes = UINT64_MAX;
    process.inherited_blocks = UINT64_MAX;
    hold(0, ML_HOLDING_ALLOCATOR, 40, 20)->mapped_bytes = 100 * KIB;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_INHERITED].private, 40 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, 0);
}
END_TEST

START_TEST(an_owner_never_takes_more_than_is_left) {
    regions[0].heap_blocks = 1;
    regions[0].heap_private_bytes = 30 * KIB;
    regions[0].heap_pages_private_bytes = 32 * KIB;
    hold(0, ML_HOLDING_MAPPED, 12, 24);
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_HEAP].private, 30 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].private, 8 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].shared, 20 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 0);
    ck_assert_int_eq(moved, (4 + 4) * KIB);
}
END_TEST

START_TEST(what_came_to_a_mapping_that_is_held_as_a_whole_is_its_holders) {
    hold(0, ML_HOLDING_MAPPED, 30, 20)->mapped_bytes = 100 * KIB;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].private, 40 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].swapped, 8 * KIB);
    ck_assert_int_eq(moved, -10 * KIB);
}
END_TEST

START_TEST(what_was_rounded_has_not_moved) {
    struct ml_profile_region_holding *holding = hold(0, ML_HOLDING_MAPPED, 40, 20);
    holding->mapped_bytes = 100 * KIB;
    holding->private_bytes--;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].private, 40 * KIB);
    ck_assert_int_eq(moved, 0);
}
END_TEST

START_TEST(files_stay_files_whoever_mapped_them) {
    process.regions_count = 2;
    name_region(0, "/usr/share/words", 7);
    regions[0].permissions = MEMLOG_SERVICE_MEMORY_PERMISSION_READ;
    name_region(1, "/usr/lib/libx.so.1", 8);
    regions[1].permissions = CODE;
    hold(0, ML_HOLDING_MAPPED, 10, 20);
    hold(1, ML_HOLDING_MAPPED, 40, 0);
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].private, 0);
    ck_assert_uint_eq(of[ML_COMPONENT_FILES].private, 40 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_CODE].private, 40 * KIB);
}
END_TEST

START_TEST(a_block_that_begins_in_another_mapping_is_the_heaps_here_too) {
    regions[0].heap_private_bytes = 39 * KIB;
    regions[0].heap_pages_private_bytes = 40 * KIB;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_HEAP].private, 39 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, 1 * KIB);
}
END_TEST

/* The second mapping begins where the first, a file's, ends. */
static void lay_behind(const char *file) {
    process.regions_count = 2;
    name_region(0, file, 8);
    regions[1].start = regions[0].end;
    regions[1].end = regions[0].end + 0x19000;
}

START_TEST(what_lies_behind_a_files_data_is_its_bss) {
    lay_behind("/usr/lib/libx.so.1");
    hold(1, ML_HOLDING_MAPPED, 15, 0); /* the kernel has joined the two */
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_MAPPED].private, 15 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_DATA].private, (40 + 25) * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 0);
}
END_TEST

START_TEST(what_lies_behind_memlogs_data_is_memlogs) {
    lay_behind("/usr/lib/libmemlog.so");
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_MEMLOG].private, 80 * KIB);
}
END_TEST

START_TEST(what_lies_behind_a_file_that_is_not_written_to_is_nobodys) {
    lay_behind("/usr/lib/libx.so.1");
    regions[0].permissions = CODE;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 40 * KIB);
}
END_TEST

/* 132 KiB that are readable, and the rest of 64 MiB that is not. */
static void lay_arena(void) {
    process.regions_count = 2;
    regions[0].start = (uint64_t)3 * (64 << 20);
    regions[0].end = regions[0].start + 0x21000;
    regions[1] = (struct ml_profile_region
    ){.start = regions[0].end, .end = regions[0].start + (64 << 20), .name = {.bytes = ""}};
}

START_TEST(an_arena_of_glibc_is_the_allocators_without_a_block) {
    lay_arena();
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, 40 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 0);
}
END_TEST

START_TEST(what_only_lies_like_an_arena_is_nobodys) {
    lay_arena();
    regions[1].end -= KIB * 4;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 40 * KIB);
}
END_TEST

/* A mapping that nobody is seen to have made is libc's, if malloc's blocks lie in it. */
START_TEST(what_lies_beside_blocks_is_the_allocators_where_mappings_are_recorded) {
    process.regions_count = 2;
    regions[0].heap_private_bytes = 2 * KIB;
    regions[0].heap_pages_private_bytes = 4 * KIB;
    hold(1, ML_HOLDING_MEMLOG, 1, 0);
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, 38 * KIB);
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 39 * KIB);
}
END_TEST

START_TEST(the_rest_of_the_heap_is_the_allocators) {
    name_region(0, "[heap]", 0);
    regions[0].heap_blocks = 1;
    regions[0].heap_private_bytes = 100;
    regions[0].heap_pages_private_bytes = 4 * KIB;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_HEAP].private, 100);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].private, 40 * KIB - 100);
    ck_assert_uint_eq(of[ML_COMPONENT_SLACK].swapped, 8 * KIB);
}
END_TEST

START_TEST(a_dump_whose_heap_was_not_laid_keeps_it_with_its_mapping) {
    process.heap_was_laid = false;
    name_region(0, "[heap]", 0);
    regions[0].heap_blocks = 1;
    regions[0].heap_private_bytes = 100;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_HEAP].private, 0);
    ck_assert_uint_eq(of[ML_COMPONENT_ANONYMOUS].private, 40 * KIB);
}
END_TEST

START_TEST(figures_at_their_limits_stay_within_the_mapping) {
    struct ml_profile_region_holding *holding = hold(0, ML_HOLDING_MAPPED, 0, 0);

    holding->mapped_bytes = UINT64_MAX;
    holding->private_bytes = UINT64_MAX;
    holding->shared_bytes = UINT64_MAX;
    regions[0].heap_blocks = UINT64_MAX;
    regions[0].heap_private_bytes = UINT64_MAX;
    regions[0].proportional_kb = UINT64_MAX / KIB;
    visit();
    ck_assert_uint_eq(of[ML_COMPONENT_HEAP].private, 40 * KIB);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("owners");
    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_add_test(cases, what_nobody_is_known_to_hold_is_of_its_mapping);
    tcase_add_test(cases, a_mapping_is_divided_among_its_owners);
    tcase_add_test(cases, what_a_forked_process_inherited_is_not_called_slack);
    tcase_add_test(cases, no_more_is_inherited_than_the_parents_blocks_can_take);
    tcase_add_test(cases, no_number_of_inherited_blocks_overflows);
    tcase_add_test(cases, an_owner_never_takes_more_than_is_left);
    tcase_add_test(cases, what_came_to_a_mapping_that_is_held_as_a_whole_is_its_holders);
    tcase_add_test(cases, what_was_rounded_has_not_moved);
    tcase_add_test(cases, files_stay_files_whoever_mapped_them);
    tcase_add_test(cases, an_arena_of_glibc_is_the_allocators_without_a_block);
    tcase_add_test(cases, what_only_lies_like_an_arena_is_nobodys);
    tcase_add_test(cases, what_lies_beside_blocks_is_the_allocators_where_mappings_are_recorded);
    tcase_add_test(cases, a_block_that_begins_in_another_mapping_is_the_heaps_here_too);
    tcase_add_test(cases, what_lies_behind_a_files_data_is_its_bss);
    tcase_add_test(cases, what_lies_behind_memlogs_data_is_memlogs);
    tcase_add_test(cases, what_lies_behind_a_file_that_is_not_written_to_is_nobodys);
    tcase_add_test(cases, the_rest_of_the_heap_is_the_allocators);
    tcase_add_test(cases, a_dump_whose_heap_was_not_laid_keeps_it_with_its_mapping);
    tcase_add_test(cases, figures_at_their_limits_stay_within_the_mapping);
    return run_suite("owners", cases);
}
