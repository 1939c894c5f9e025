#include "tools/analyzer/whole/grown.h"

#include <string.h>

#include <check.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/suite.h"

enum { KIB_PER_MIB = 1024, MIB = 1 << 20, ANONYMOUS = 0, CODE = 1, REGIONS = 2 };

static struct ml_profile_region now[REGIONS], before[REGIONS];
static struct ml_profile_process process, earlier;
static struct ml_grown grown;
static char text[ML_GROWN_TEXT_BYTES];

/* 40 MiB of heap and 10 of code, at both readings. */
static void setup(void) {
    now[ANONYMOUS] = (struct ml_profile_region
    ){.start = 0x10000,
      .end = 0x40010000,
      .permissions = MEMLOG_SERVICE_MEMORY_PERMISSION_READ | MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE,
      .name = {.bytes = ""},
      .private_dirty_kb = 40 * KIB_PER_MIB,
      .heap_blocks = 1,
      .heap_private_bytes = 40 * MIB,
      .heap_pages_private_bytes = 40 * MIB};
    now[CODE] = (struct ml_profile_region
    ){.start = 0x50000000,
      .end = 0x90000000,
      .permissions =
          MEMLOG_SERVICE_MEMORY_PERMISSION_READ | MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE,
      .inode = 1,
      .name = {.bytes = "/bin/x", .count_bytes = 6},
      .private_clean_kb = 10 * KIB_PER_MIB};
    memcpy(before, now, sizeof before);
    earlier = (struct ml_profile_process
    ){.regions = before, .regions_count = REGIONS, .heap_was_laid = true, .regions_boottime_ns = 7};
    process = (struct ml_profile_process
    ){.regions = now, .regions_count = REGIONS, .heap_was_laid = true, .earlier = &earlier};
}

START_TEST(names_the_component_that_grew_and_the_heap) {
    now[CODE].private_clean_kb += (uint64_t)20 * KIB_PER_MIB;
    ck_assert(ml_grown_of(&process, &grown));
    ck_assert_int_eq(grown.all, 20 * MIB);
    ck_assert_uint_eq(grown.since_boottime_ns, 7);
    ck_assert_str_eq(ml_grown_text(&grown, text), "code +20.0 MiB, heap +0 B");
}
END_TEST

START_TEST(says_what_grew_while_the_heap_shrank) {
    now[ANONYMOUS].heap_private_bytes = 10 * MIB;
    ck_assert(ml_grown_of(&process, &grown));
    ck_assert_int_eq(grown.all, 0);
    ck_assert_str_eq(ml_grown_text(&grown, text), "allocator slack +30.0 MiB, heap -30.0 MiB");
}
END_TEST

START_TEST(leaves_out_what_hardly_grew) {
    now[ANONYMOUS].private_dirty_kb += (uint64_t)100 * KIB_PER_MIB;
    now[CODE].private_clean_kb += KIB_PER_MIB;
    ck_assert(ml_grown_of(&process, &grown));
    ck_assert_int_eq(grown.all, 101 * MIB);
    ck_assert_str_eq(ml_grown_text(&grown, text), "other anonymous +100.0 MiB, heap +0 B");
}
END_TEST

START_TEST(compares_nothing_without_two_readings_of_one_kind) {
    earlier.heap_was_laid = false;
    ck_assert(!ml_grown_of(&process, &grown));
    earlier.heap_was_laid = true;
    earlier.regions_count = 0;
    ck_assert(!ml_grown_of(&process, &grown));
    process.earlier = NULL;
    ck_assert(!ml_grown_of(&process, &grown));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, names_the_component_that_grew_and_the_heap);
    tcase_add_test(tests, says_what_grew_while_the_heap_shrank);
    tcase_add_test(tests, leaves_out_what_hardly_grew);
    tcase_add_test(tests, compares_nothing_without_two_readings_of_one_kind);
    return run_suite("tools/grown", tests);
}
