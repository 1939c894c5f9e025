#include "tools/analyzer/whole/whole.h"

#include <string.h>

#include <check.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/suite.h"

enum { KIB_PER_MIB = 1024, MIB = 1 << 20 };

static char text[ML_WHOLE_TEXT_BYTES];
static struct ml_whole whole;
static struct ml_profile_region regions[2];

static void setup(void) {
    whole = (struct ml_whole){0};
    regions[0] = (struct ml_profile_region
    ){.start = 0x10000,
      .end = 0x20000000,
      .permissions = MEMLOG_SERVICE_MEMORY_PERMISSION_READ | MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE,
      .name = {.bytes = ""},
      .size_kb = (uint64_t)200 * KIB_PER_MIB,
      .private_dirty_kb = (uint64_t)30 * KIB_PER_MIB,
      .heap_blocks = 1,
      .heap_private_bytes = (uint64_t)12 * MIB,
      .heap_pages_private_bytes = (uint64_t)16 * MIB};
    regions[1] = (struct ml_profile_region
    ){.start = 0x30000000,
      .end = 0x40000000,
      .permissions =
          MEMLOG_SERVICE_MEMORY_PERMISSION_READ | MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE,
      .inode = 7,
      .name = {.bytes = "/bin/x", .count_bytes = 6},
      .size_kb = (uint64_t)200 * KIB_PER_MIB,
      .private_clean_kb = (uint64_t)5 * KIB_PER_MIB,
      .shared_clean_kb = (uint64_t)50 * KIB_PER_MIB};
}

static struct ml_profile_process process_of_35_mib(void) {
    return (struct ml_profile_process
    ){.state = MEMLOG_SERVICE_PROCESS_STATE_RUNNING,
      .regions = regions,
      .regions_count = 2,
      .heap_was_laid = true,
      .coverage_was_read = true,
      .coverage_private_bytes = (uint64_t)35 * MIB};
}

START_TEST(private_memory_is_the_sum_of_its_components) {
    const struct ml_profile_process process = process_of_35_mib();

    ml_whole_add(&whole, &process);
    ck_assert_uint_eq(ml_whole_bytes(&whole), (uint64_t)35 * MIB);
    ck_assert_str_eq(
        ml_whole_text(&whole, 0, text), "35.0 MiB = 12.0 heap + 14.0 other + 5.0 code + 4.0 slack"
    );
    ck_assert_str_eq(ml_whole_notes(&whole, text), "");
}
END_TEST

START_TEST(memory_whose_mappings_were_not_read_is_a_part_of_the_sum) {
    const struct ml_profile_process read = process_of_35_mib();
    const struct ml_profile_process unread = {
        .coverage_was_read = true, .coverage_private_bytes = (uint64_t)5 * MIB};

    ml_whole_add(&whole, &unread);
    ck_assert_str_eq(ml_whole_text(&whole, 0, text), "5.0 MiB, its parts were not read");
    ml_whole_add(&whole, &read);
    ck_assert_ptr_nonnull(strstr(ml_whole_text(&whole, 0, text), "40.0 MiB = 12.0 heap"));
    ck_assert_ptr_nonnull(strstr(text, "5.0 not read"));
    ck_assert_str_eq(ml_whole_notes(&whole, text), "not read: what that part is made of");
    ck_assert_uint_eq(whole.read_count, 2);
}
END_TEST

START_TEST(processes_that_were_never_read_are_counted) {
    const struct ml_profile_process never = {0};
    const struct ml_profile_process folded = {.folded_processes = 40};

    ml_whole_add(&whole, &never);
    ck_assert_str_eq(ml_whole_notes(&whole, text), "1 process was never read");
    ml_whole_add(&whole, &folded);
    ck_assert_str_eq(ml_whole_notes(&whole, text), "41 processes were never read");
    ck_assert_uint_eq(ml_whole_bytes(&whole), 0);
}
END_TEST

START_TEST(a_sampled_process_has_no_heap_and_the_notes_say_so) {
    struct ml_profile_process process = process_of_35_mib();

    process.heap_was_laid = false;
    process.sampling_bytes = 4096;
    ml_whole_add(&whole, &process);
    ck_assert_str_eq(ml_whole_text(&whole, 0, text), "35.0 MiB = 30.0 other + 5.0 code");
    ck_assert_str_eq(
        ml_whole_notes(&whole, text), "sampled: which part of it is heap is not known"
    );
}
END_TEST

START_TEST(one_that_ended_while_it_was_read_is_not_called_sampled) {
    struct ml_profile_process process = process_of_35_mib();

    process.heap_was_laid = false;
    process.sampling_bytes = 1;
    ml_whole_add(&whole, &process);
    ck_assert_str_eq(
        ml_whole_notes(&whole, text), "read as it ended: which part of it is heap is not known"
    );
}
END_TEST

START_TEST(what_moved_is_told_whatever_its_sign) {
    whole.components.moved = 3 * MIB;
    ck_assert_str_eq(ml_whole_notes(&whole, text), "\u00b1 3.0 MiB moved");
    whole.components.moved = -3 * MIB;
    ck_assert_str_eq(ml_whole_notes(&whole, text), "\u00b1 3.0 MiB moved");
}
END_TEST

START_TEST(the_tree_is_what_runs_recorded_or_not) {
    struct ml_profile_process processes[2] = {process_of_35_mib(), process_of_35_mib()};
    struct ml_profile_process others[1] = {
        {.state = MEMLOG_SERVICE_PROCESS_STATE_RUNNING,
         .recording = ML_PROFILE_UNRECORDED,
         .coverage_was_read = true,
         .coverage_private_bytes = (uint64_t)2 * MIB,
         .footprint_bytes = (uint64_t)2 * MIB}};
    struct ml_profile profile = {
        .processes = processes, .processes_count = 2, .others = others, .others_count = 1};

    processes[1].state = MEMLOG_SERVICE_PROCESS_STATE_EXITED;
    ml_whole_of_running(&profile, &whole);
    ck_assert_uint_eq(ml_whole_bytes(&whole), (uint64_t)37 * MIB);
    ck_assert_uint_eq(whole.unread_bytes, (uint64_t)2 * MIB);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, private_memory_is_the_sum_of_its_components);
    tcase_add_test(tests, memory_whose_mappings_were_not_read_is_a_part_of_the_sum);
    tcase_add_test(tests, processes_that_were_never_read_are_counted);
    tcase_add_test(tests, a_sampled_process_has_no_heap_and_the_notes_say_so);
    tcase_add_test(tests, one_that_ended_while_it_was_read_is_not_called_sampled);
    tcase_add_test(tests, what_moved_is_told_whatever_its_sign);
    tcase_add_test(tests, the_tree_is_what_runs_recorded_or_not);
    return run_suite("tools/whole", tests);
}
