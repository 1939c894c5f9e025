#include "tracer/process/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { PAGE = 4096, ROOM_BYTES = 1 << 20, GUARD = 1 << 16 };
static const uint64_t reach = (uint64_t)1 << 31;
static const uint64_t growth = (uint64_t)1 << 30;
static const uint64_t lowest = 1 << 16; /* of vm.mmap_min_addr */

static struct ml_maps maps;

static void begin(void) {
    maps = (struct ml_maps){.list = calloc(64, sizeof(*maps.list)), .text = calloc(1, 256)};
    (void)memcpy(maps.text + 1, "[heap]", 7);
    (void)memcpy(maps.text + 8, "[stack]", 8);
}

static void end(void) {
    ml_maps_free(&maps);
}

static void map(uint64_t start, uint64_t bytes, const char *name) {
    maps.list[maps.count++] = (struct ml_map
    ){.start = start,
      .end = start + bytes,
      .path = strcmp(name, "[heap]") == 0    ? 1
              : strcmp(name, "[stack]") == 0 ? 8
                                             : 0};
}

static uint64_t farthest(uint64_t at, uint64_t bytes, uint64_t low, uint64_t high) {
    const uint64_t first = at < low ? at : low;
    const uint64_t last = at + bytes > high ? at + bytes : high;
    return last - first;
}

/* What each answer promises. */
static void assert_good(uint64_t at, uint64_t low, uint64_t high, uint64_t bytes) {
    ck_assert_uint_eq(at % PAGE, 0);
    ck_assert_uint_ge(at, lowest);
    ck_assert_uint_lt(farthest(at, bytes, low, high), reach);
    for (size_t i = 0; i < maps.count; i++) {
        const struct ml_map *one = &maps.list[i];
        const char *path = ml_maps_path(&maps, one);
        /* What grows grows up to the next mapping. */
        const bool is_next_above = i == 0 || maps.list[i - 1].end <= at;
        const bool is_next_below = i + 1 == maps.count || maps.list[i + 1].start >= at + bytes;
        const uint64_t above = strcmp(path, "[heap]") == 0 && is_next_below ? growth : 0;
        const uint64_t below = strcmp(path, "[stack]") == 0 && is_next_above ? growth : 0;
        const bool is_below = at + bytes + GUARD + below <= one->start;
        const bool is_above = at >= one->end + GUARD + above;
        if (!is_below && !is_above) {
            ck_abort_msg(
                "%lx with %lx bytes is too close to %lx-%lx %s",
                (unsigned long)at,
                (unsigned long)bytes,
                (unsigned long)one->start,
                (unsigned long)one->end,
                path
            );
        }
    }
}

START_TEST(room_lies_below_an_executable_whose_heap_grows_above_it) {
    const uint64_t low = 0x555555554000;
    const uint64_t high = low + 0x10000;
    map(low, 0x10000, "");
    map(high + 0x1000, 0x21000, "[heap]");
    map(0x7ffff7c00000, 0x200000, "");
    const uint64_t at = ml_maps_room(&maps, low, high, ROOM_BYTES);
    assert_good(at, low, high, ROOM_BYTES);
    ck_assert_uint_lt(at, low);
}
END_TEST

START_TEST(room_above_a_heap_leaves_it_a_gibibyte) {
    /* A program without room below it. */
    const uint64_t low = 0x400000;
    const uint64_t high = 0x600000;
    map(0x10000, low - 0x10000, "");
    map(low, high - low, "");
    map(high, 0x21000, "[heap]");
    const uint64_t at = ml_maps_room(&maps, low, high, ROOM_BYTES);
    assert_good(at, low, high, ROOM_BYTES);
    ck_assert_uint_ge(at, high + 0x21000 + growth);
}
END_TEST

START_TEST(room_below_a_stack_leaves_it_a_gibibyte) {
    const uint64_t stack = 0x7ffffffde000;
    const uint64_t low = stack - growth - 4 * ROOM_BYTES;
    map(low - ((uint64_t)3 << 30), (uint64_t)3 << 30, ""); /* nothing is free below it */
    map(low, ROOM_BYTES, "");
    map(stack, 0x21000, "[stack]");
    const uint64_t at = ml_maps_room(&maps, low, low + ROOM_BYTES, ROOM_BYTES);
    assert_good(at, low, low + ROOM_BYTES, ROOM_BYTES);
    ck_assert_uint_gt(at, low);
}
END_TEST

START_TEST(there_is_none_where_all_within_reach_is_taken) {
    const uint64_t low = 0x7f0000000000;
    map(low - reach, reach, "");
    map(low, ROOM_BYTES, "");
    map(low + ROOM_BYTES, reach, "");
    ck_assert_uint_eq(ml_maps_room(&maps, low, low + ROOM_BYTES, ROOM_BYTES), 0);
}
END_TEST

START_TEST(there_is_none_for_an_object_that_is_larger_than_what_reaches) {
    const uint64_t low = 0x7f0000000000;
    map(low, PAGE, "");
    ck_assert_uint_eq(ml_maps_room(&maps, low, low + reach, ROOM_BYTES), 0);
}
END_TEST

START_TEST(a_gap_that_fits_to_the_page_is_taken_and_one_page_less_is_not) {
    const uint64_t low = 0x7f0000000000;
    const uint64_t gap = ROOM_BYTES + 2 * GUARD;
    for (uint64_t less = 0; less <= PAGE; less += PAGE) {
        maps.count = 0;
        map(low - gap + less - reach, reach, "");
        map(low, ROOM_BYTES, "");
        map(low + ROOM_BYTES, reach, "");
        const uint64_t at = ml_maps_room(&maps, low, low + ROOM_BYTES, ROOM_BYTES);
        ck_assert_uint_eq(at, less == 0 ? low - gap + GUARD : 0);
    }
}
END_TEST

START_TEST(room_that_is_taken_is_not_given_again) {
    const uint64_t low = 0x555555554000;
    map(low, 0x10000, "");
    for (uint32_t i = 0; i < 20; i++) {
        const uint64_t at = ml_maps_room(&maps, low, low + 0x10000, ROOM_BYTES);
        assert_good(at, low, low + 0x10000, ROOM_BYTES);
        ck_assert(ml_maps_take(&maps, at, ROOM_BYTES));
        for (size_t k = 1; k < maps.count; k++) {
            ck_assert_uint_le(maps.list[k - 1].end, maps.list[k].start);
        }
    }
}
END_TEST

/* Random layouts, dense and sparse: what is answered is right, and what fits is answered. */
START_TEST(whatever_is_mapped_an_answer_is_within_reach_and_clear_of_it) {
    uint32_t answers = 0;
    uint32_t seed = 4711;
    for (uint32_t round = 0; round < 20000; round++) {
        maps.count = 0;
        const size_t count = 1 + (size_t)(rand_r(&seed) % 12);
        uint64_t at = (uint64_t)(rand_r(&seed) % 4096 + 1) << (12 + rand_r(&seed) % 20);
        for (size_t i = 0; i < count; i++) {
            const uint64_t bytes = (uint64_t)(rand_r(&seed) % 4096 + 1)
                                   << (12 + rand_r(&seed) % 10);
            const char *name = i == 1 && round % 3 == 0           ? "[heap]"
                               : i + 1 == count && round % 2 == 0 ? "[stack]"
                                                                  : "";
            map(at, bytes, name);
            at += bytes + ((uint64_t)(rand_r(&seed) % 1024) << (12 + rand_r(&seed) % 12));
        }
        const struct ml_map *object = &maps.list[(size_t)rand_r(&seed) % count];
        const uint64_t room = ml_maps_room(&maps, object->start, object->end, ROOM_BYTES);
        if (room != 0) {
            assert_good(room, object->start, object->end, ROOM_BYTES);
            answers++;
        }
    }
    ck_assert_uint_gt(answers, 10000);
}
END_TEST

START_TEST(the_maps_of_this_process_have_its_code_and_its_stack) {
    struct ml_maps own;
    struct ml_error_message error = {.text = ""};
    ck_assert(ml_maps_read(getpid(), &own, &error));
    const struct ml_map *code = ml_maps_at(&own, (uint64_t)(uintptr_t)&ml_maps_read);
    ck_assert_ptr_nonnull(code);
    ck_assert(code->is_executable && code->is_readable && !code->is_writable);
    ck_assert_uint_ne(code->inode, 0);
    ck_assert_ptr_nonnull(strstr(ml_maps_path(&own, code), "maps_test"));
    const struct ml_map *stack = ml_maps_at(&own, (uint64_t)(uintptr_t)&own);
    ck_assert_ptr_nonnull(stack);
    ck_assert_str_eq(ml_maps_path(&own, stack), "[stack]");
    ck_assert_ptr_eq(ml_maps_at(&own, stack->start), stack);
    ck_assert_ptr_ne(ml_maps_at(&own, stack->end), stack);
    ck_assert_ptr_null(ml_maps_at(&own, 0));
    for (size_t i = 1; i < own.count; i++) {
        ck_assert_uint_le(own.list[i - 1].end, own.list[i].start);
    }
    ml_maps_free(&own);
}
END_TEST

START_TEST(a_process_that_has_ended_has_none_and_a_reason) {
    struct ml_maps none;
    struct ml_error_message error = {.text = ""};
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(!ml_maps_read(child, &none, &error));
    ck_assert_int_gt((int)strlen(error.text), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("maps");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, room_lies_below_an_executable_whose_heap_grows_above_it);
    tcase_add_test(tests, room_above_a_heap_leaves_it_a_gibibyte);
    tcase_add_test(tests, room_below_a_stack_leaves_it_a_gibibyte);
    tcase_add_test(tests, there_is_none_where_all_within_reach_is_taken);
    tcase_add_test(tests, there_is_none_for_an_object_that_is_larger_than_what_reaches);
    tcase_add_test(tests, a_gap_that_fits_to_the_page_is_taken_and_one_page_less_is_not);
    tcase_add_test(tests, room_that_is_taken_is_not_given_again);
    tcase_add_test(tests, whatever_is_mapped_an_answer_is_within_reach_and_clear_of_it);
    tcase_add_test(tests, the_maps_of_this_process_have_its_code_and_its_stack);
    tcase_add_test(tests, a_process_that_has_ended_has_none_and_a_reason);
    return run_suite("maps", tests);
}
