#include "service/session/coverage.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#define MIB (UINT64_C(1) << 20)

static struct ml_coverage_reading
reading_of(uint64_t private_bytes, uint64_t heap_bytes, uint64_t most_bytes) {
    return (struct ml_coverage_reading
    ){.was_read = true,
      .private_bytes = private_bytes,
      .heap_bytes = heap_bytes,
      .most_bytes = most_bytes,
      .most_blocks = 1};
}

static struct ml_coverage_facts healthy(void) {
    return (struct ml_coverage_facts
    ){.running = true, .from_startup = true, .past_is_sure = true, .total_blocks = 1};
}

/* What is reported after one such reading. */
static struct ml_coverage_told
told_of(const struct ml_coverage_reading *reading, const struct ml_coverage_facts *facts) {
    struct ml_coverage coverage = {.allocator = {.owner = "libc.so.6"}};
    struct ml_coverage_told told;
    ml_coverage_note(&coverage, reading);
    ml_coverage_tell(&coverage, facts, &told);
    return told;
}

START_TEST(a_running_process_has_its_last_reading_and_an_ended_one_its_largest) {
    struct ml_coverage coverage = {.allocator = {.owner = "libc.so.6"}};
    const struct ml_coverage_reading first = reading_of(50 * MIB, 40 * MIB, 40 * MIB);
    const struct ml_coverage_reading last = reading_of(30 * MIB, 3 * MIB, 40 * MIB);
    struct ml_coverage_facts facts = healthy();
    struct ml_coverage_told told;
    ml_coverage_note(&coverage, &first);
    ml_coverage_note(&coverage, &last);
    ml_coverage_tell(&coverage, &facts, &told);
    ck_assert_uint_eq(told.private_bytes, 30 * MIB);
    ck_assert_uint_eq(told.heap_bytes, 3 * MIB);
    facts.running = false;
    ml_coverage_tell(&coverage, &facts, &told);
    ck_assert_uint_eq(told.private_bytes, 50 * MIB);
    ck_assert_uint_eq(told.heap_bytes, 40 * MIB);
}
END_TEST

START_TEST(one_that_was_never_read_has_no_figures_and_no_reason) {
    const struct ml_coverage coverage = {.allocator = {.owner = "libc.so.6"}};
    const struct ml_coverage_facts facts = healthy();
    struct ml_coverage_told told;
    ml_coverage_tell(&coverage, &facts, &told);
    ck_assert(!told.was_read);
    ck_assert_uint_eq(told.private_bytes, 0);
    ck_assert_uint_eq(told.heap_bytes, 0);
    ck_assert_str_eq(told.unseen, "");
    ck_assert_str_eq(told.allocator, "glibc");
}
END_TEST

START_TEST(a_heap_that_explains_next_to_nothing_is_named_with_both_sizes) {
    const struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading reading = reading_of(330 * MIB, 3 * MIB, 12 * MIB);
    const struct ml_coverage_told told = told_of(&reading, &facts);
    ck_assert_str_eq(
        told.unseen,
        "of 330.0 MiB private memory the heap explains 12.0 MiB: the rest is memory that the "
        "program maps itself, or that memlog does not see"
    );
}
END_TEST

START_TEST(memory_whose_mapper_is_known_needs_no_heap_to_explain_it) {
    struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading reading = reading_of(330 * MIB, 3 * MIB, 12 * MIB);
    facts.mapped_bytes = 100 * MIB;
    ck_assert_str_ne(told_of(&reading, &facts).unseen, "");
    facts.mapped_bytes = 300 * MIB;
    const struct ml_coverage_told told = told_of(&reading, &facts);
    ck_assert_str_eq(told.unseen, "");
    ck_assert_uint_eq(told.mapped_bytes, 300 * MIB);
    facts.mapped_bytes = UINT64_MAX;
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
    facts.mapped_bytes = 100 * MIB;
    facts.files_bytes = 60 * MIB;
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
}
END_TEST

START_TEST(pages_of_files_need_no_heap_though_the_mappings_were_not_read) {
    struct ml_coverage_facts facts = healthy();
    struct ml_coverage_reading reading = reading_of(40 * MIB, 1 * MIB, 1 * MIB);
    reading.files_bytes = 10 * MIB;
    ck_assert_str_ne(told_of(&reading, &facts).unseen, "");
    reading.files_bytes = 31 * MIB;
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
    ck_assert_uint_eq(told_of(&reading, &facts).files_bytes, 31 * MIB);
    facts.files_bytes = 35 * MIB; /* with what was written there: not both */
    ck_assert_uint_eq(told_of(&reading, &facts).files_bytes, 35 * MIB);
    /* Files that the program mapped are in the reading, too, and so is what a fork made common. */
    reading = reading_of(80 * MIB, 0, 0);
    reading.files_bytes = 30 * MIB;
    facts.files_bytes = 0;
    facts.mapped_bytes = 30 * MIB;
    ck_assert_str_ne(told_of(&reading, &facts).unseen, "");
    facts.mapped_bytes = 0;
    facts.shared_files_bytes = 30 * MIB;
    facts.view_private_bytes = 50 * MIB;
    ck_assert_str_ne(told_of(&reading, &facts).unseen, "");
}
END_TEST

START_TEST(what_a_fork_has_made_common_was_its_own_before) {
    struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading reading = reading_of(20 * MIB, 300 << 10, 300 << 10);
    facts.shared_files_bytes = 70 * MIB;
    facts.view_private_bytes = 1 * MIB;
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
    ck_assert_uint_eq(told_of(&reading, &facts).shared_bytes, 19 * MIB);
    facts.view_private_bytes = 20 * MIB; /* of the same moment: they were common then, too */
    ck_assert_str_ne(told_of(&reading, &facts).unseen, "");
    facts.view_private_bytes = 1 * MIB;
    facts.shared_files_bytes = 2 * MIB;
    ck_assert_uint_eq(told_of(&reading, &facts).shared_bytes, 2 * MIB);
    ck_assert_str_ne(told_of(&reading, &facts).unseen, "");
}
END_TEST

START_TEST(an_allocator_that_keeps_what_was_freed_is_not_blamed) {
    const struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading kept = reading_of(115 * MIB, 1, 95 * MIB);
    const struct ml_coverage_told told = told_of(&kept, &facts);
    ck_assert_str_eq(told.unseen, "");
}
END_TEST

START_TEST(a_difference_of_a_few_mebibytes_is_ignored) {
    const struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading small = reading_of(8 * MIB, 0, 0);
    const struct ml_coverage_reading large = reading_of(9 * MIB, 0, 0);
    ck_assert_str_eq(told_of(&small, &facts).unseen, "");
    ck_assert_str_ne(told_of(&large, &facts).unseen, "");
}
END_TEST

START_TEST(many_small_blocks_take_more_than_was_asked_for) {
    const struct ml_coverage_facts facts = healthy();
    struct ml_coverage_reading reading = reading_of(64 * MIB, 2 * MIB, 2 * MIB);
    ck_assert_str_ne(told_of(&reading, &facts).unseen, "");
    reading.most_blocks = 2 * MIB; /* of one byte each */
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
    reading.most_blocks = UINT64_MAX;
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
}
END_TEST

START_TEST(blocks_that_were_never_touched_are_nobodys_fault) {
    const struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading untouched = reading_of(12 * MIB, 78 * MIB, 78 * MIB);
    ck_assert_str_eq(told_of(&untouched, &facts).unseen, "");
}
END_TEST

START_TEST(what_came_before_the_recording_is_said_to_be_unknown) {
    struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading small = reading_of(MIB, MIB, MIB);
    const struct ml_coverage_reading large = reading_of(330 * MIB, MIB, MIB);
    facts.from_startup = false;
    ck_assert_str_eq(
        told_of(&small, &facts).unseen, "what it had allocated before it was recorded is not known"
    );
    ck_assert_ptr_nonnull(
        strstr(told_of(&large, &facts).unseen, "or was there before it was recorded")
    );
}
END_TEST

static void unseen_is(const struct ml_allocator *allocator, uint64_t blocks, const char *text) {
    const struct ml_coverage coverage = {.allocator = *allocator};
    struct ml_coverage_facts facts = healthy();
    struct ml_coverage_told told;
    facts.total_blocks = blocks;
    ml_coverage_tell(&coverage, &facts, &told);
    ck_assert_str_eq(told.unseen, text);
}

START_TEST(what_the_constructor_found_is_told_before_anything_else) {
    const struct ml_allocator own = {.in_front = true, .in_program = true};
    const struct ml_allocator library = {.owner = "libown.so", .in_front = true};
    const struct ml_allocator called = {
        .owner = "libjemalloc.so.2",
        .entry_point = "mallocx",
        .entry_point_of = "libjemalloc.so.2"};
    const struct ml_allocator inside = {.owner = "libc.so.6", .entry_point = "je_malloc"};
    const struct ml_allocator second = {.owner = "libc.so.6", .second_libc = true};
    unseen_is(
        &own,
        0,
        "the executable's own malloc is called instead of memlog's: memlog sees nothing of it"
    );
    unseen_is(
        &library,
        7,
        "the malloc of libown.so is called instead of memlog's: memlog sees what it passes on"
    );
    unseen_is(&called, 7, "it calls mallocx of libjemalloc.so.2, which memlog does not see");
    unseen_is(
        &inside,
        7,
        "the executable has an allocator of its own (je_malloc), which memlog does not see"
    );
    unseen_is(&second, 7, "a second libc was loaded (dlmopen), whose malloc memlog does not see");
}
END_TEST

START_TEST(an_allocator_that_is_hooked_at_its_entries_is_seen) {
    struct ml_coverage coverage = {.allocator = {.in_front = true, .in_program = true}};
    struct ml_coverage_facts facts = healthy();
    struct ml_coverage_told told;
    facts.entries.functions = 15;
    ml_coverage_tell(&coverage, &facts, &told);
    ck_assert_str_eq(told.unseen, "");
    ck_assert_uint_eq(told.hooked_functions, 15);
    coverage.allocator = (struct ml_allocator){.owner = "libc.so.6", .entry_point = "je_malloc"};
    ml_coverage_tell(&coverage, &facts, &told);
    ck_assert_str_eq(told.unseen, "");
    /* What is hooked of one allocator says nothing of another. */
    strcpy(facts.entries.refused, "je_free: a call is among its first bytes");
    ml_coverage_tell(&coverage, &facts, &told);
    ck_assert_str_eq(
        told.unseen,
        "the executable has an allocator of its own, which memlog could not hook: je_free: a call "
        "is among its first bytes"
    );
}
END_TEST

START_TEST(pages_of_an_allocator_inside_the_executable_that_no_block_was_on_are_told) {
    struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading reading = reading_of(77 * MIB, 4 * MIB, 6 * MIB);
    /* Its mapper is known, and its blocks are not. */
    facts.mapped_bytes = 65 * MIB;
    facts.allocator_bytes = 58 * MIB;
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
    facts.entries.functions = 15;
    ck_assert_str_eq(
        told_of(&reading, &facts).unseen,
        "58.0 MiB private memory of the allocator inside the executable holds no block that memlog "
        "saw, and it never saw more than 6.0 MiB at once: calls go past its functions (inlined by "
        "the compiler?)"
    );
    facts.allocator_bytes = (8 + 12) * MIB; /* blocks that were freed may have left that */
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
    facts.allocator_bytes = 58 * MIB;
    facts.from_startup = false; /* they may be older */
    ck_assert_str_eq(
        told_of(&reading, &facts).unseen,
        "what it had allocated before it was recorded is not known"
    );
}
END_TEST

START_TEST(objects_whose_calls_go_past_memlog_are_named_before_what_they_did) {
    struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading reading = reading_of(MIB, MIB, MIB);
    facts.unknown_frees = 100;
    facts.past = (struct ml_coverage_past){.calls = true, .file = "plugin.so"};
    ck_assert_str_eq(
        told_of(&reading, &facts).unseen,
        "the allocator calls of plugin.so go past memlog (opened with RTLD_DEEPBIND?): they are "
        "not seen"
    );
    facts.past.several = true;
    facts.past.file[0] = 0;
    ck_assert_str_eq(
        told_of(&reading, &facts).unseen,
        "the allocator calls of a library and other libraries go past memlog (opened with "
        "RTLD_DEEPBIND?): they are not seen"
    );
    facts.past.second_libc = true;
    ck_assert_ptr_nonnull(strstr(told_of(&reading, &facts).unseen, "a second libc was loaded"));
}
END_TEST

START_TEST(blocks_that_come_and_go_past_memlog_are_told_where_nothing_was_lost) {
    struct ml_coverage_facts facts = healthy();
    const struct ml_coverage_reading reading = reading_of(MIB, MIB, MIB);
    facts.unknown_frees = 100;
    ck_assert_ptr_nonnull(strstr(told_of(&reading, &facts).unseen, "100 blocks were freed"));
    facts.unknown_frees = 0;
    facts.missed_frees = 3;
    ck_assert_ptr_nonnull(strstr(told_of(&reading, &facts).unseen, "3 addresses were given out"));
    facts.past_is_sure = false;
    ck_assert_str_eq(told_of(&reading, &facts).unseen, "");
}
END_TEST

START_TEST(an_allocator_is_called_by_the_name_of_its_file) {
    static const struct {
        const char *owner, *name;
    } cases[] = {
        {"libc.so.6", "glibc"},
        {"libc-2.31.so", "glibc"},
        {"libjemalloc.so.2", "jemalloc"},
        {"libtcmalloc_minimal.so.4", "tcmalloc"},
        {"libmimalloc.so.2.0", "mimalloc"},
        {"libasan.so.8", "AddressSanitizer"},
        {"libown.so", "libown.so"},
        {"", "unknown"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_allocator allocator = {.in_program = false};
        strcpy(allocator.owner, cases[i].owner);
        ck_assert_str_eq(ml_coverage_allocator(&allocator), cases[i].name);
        allocator.in_program = true;
        ck_assert_str_eq(ml_coverage_allocator(&allocator), "inside the executable");
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("coverage");
    tcase_add_test(cases, a_running_process_has_its_last_reading_and_an_ended_one_its_largest);
    tcase_add_test(cases, one_that_was_never_read_has_no_figures_and_no_reason);
    tcase_add_test(cases, a_heap_that_explains_next_to_nothing_is_named_with_both_sizes);
    tcase_add_test(cases, memory_whose_mapper_is_known_needs_no_heap_to_explain_it);
    tcase_add_test(cases, pages_of_files_need_no_heap_though_the_mappings_were_not_read);
    tcase_add_test(cases, what_a_fork_has_made_common_was_its_own_before);
    tcase_add_test(cases, an_allocator_that_keeps_what_was_freed_is_not_blamed);
    tcase_add_test(cases, a_difference_of_a_few_mebibytes_is_ignored);
    tcase_add_test(cases, many_small_blocks_take_more_than_was_asked_for);
    tcase_add_test(cases, blocks_that_were_never_touched_are_nobodys_fault);
    tcase_add_test(cases, what_came_before_the_recording_is_said_to_be_unknown);
    tcase_add_test(cases, what_the_constructor_found_is_told_before_anything_else);
    tcase_add_test(cases, an_allocator_that_is_hooked_at_its_entries_is_seen);
    tcase_add_test(
        cases, pages_of_an_allocator_inside_the_executable_that_no_block_was_on_are_told
    );
    tcase_add_test(cases, objects_whose_calls_go_past_memlog_are_named_before_what_they_did);
    tcase_add_test(cases, blocks_that_come_and_go_past_memlog_are_told_where_nothing_was_lost);
    tcase_add_test(cases, an_allocator_is_called_by_the_name_of_its_file);
    return run_suite("coverage", cases);
}
