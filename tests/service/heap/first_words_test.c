#include "service/heap/first_words.h"

#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

#define VTABLE UINT64_C(0x7f0000001010)
#define OTHER UINT64_C(0x7f0000002020)

static struct ml_budget budget;
static struct ml_tree tree;
static struct ml_stack_store stacks;
static struct ml_tracker tracker;
static struct ml_first_words words;
static uint64_t ticks;
static const struct ml_words_rest no_rest = {.take = NULL};

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    tree = (struct ml_tree){.epoch = 1};
    ml_stack_store_init(&stacks, &budget);
    ml_tracker_init(&tracker, &budget, &tree, &stacks, 1);
    words = (struct ml_first_words){.budget = &budget};
    ticks = 0;
}

static void tear_down(void) {
    ml_first_words_fini(&words);
    ml_tracker_fini(&tracker);
    ml_stack_store_fini(&stacks);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

static void allocate(uint64_t key, uint32_t node, uint16_t type, uint64_t size, uint64_t weight) {
    struct ml_tracker_alloc alloc = {
        .key = key,
        .weight_bytes = size * weight,
        .weight_blocks = weight,
        .size_bytes = size,
        .sampled = weight > 1};
    ml_tracker_look_up(&tracker, key, node, type, size, &alloc.lookup);
    ck_assert_int_eq(ml_tracker_alloc(&tracker, ++ticks, &alloc), ML_OK);
}

static void release(uint64_t key) {
    struct ml_tracker_lookup lookup;
    struct ml_live_block block;
    ml_tracker_look_up(&tracker, key, 0, 0, 0, &lookup);
    ck_assert(ml_tracker_free(&tracker, ++ticks, key, &lookup, &block));
}

static void take(struct memlog_service_word *items, uint32_t count) {
    const struct memlog_service_process_view view = {
        .words = {.items = items, .count = count}, .words_were_read = true, .words_read_bytes = 9};
    ml_first_words_begin(&words, &tracker, &view);
    for (uint32_t i = 0; i < count; i++) { /* in pieces */
        ml_first_words_add(&words, &tracker, &items[i], 1);
    }
}

/* "NODE:WORD:BYTES/BLOCKS ..." */
static const char *summed(void) {
    static char said[512];
    struct ml_snapshot_word *sums = words.sums;
    uint32_t count = words.sums_count;
    const bool is_settled = sums != NULL;
    size_t at = 0;
    ck_assert(is_settled || ml_first_words_sum(&words, &tracker, no_rest, &sums, &count));
    said[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        at += (size_t)snprintf(
            said + at,
            sizeof(said) - at,
            "%s%u:%s:%u/%u",
            i > 0 ? " " : "",
            sums[i].node,
            sums[i].word == VTABLE ? "V" : "O",
            (unsigned)sums[i].live_bytes,
            (unsigned)sums[i].live_blocks
        );
    }
    if (!is_settled) {
        free(sums);
    }
    return said;
}

static struct memlog_service_word seen[] = {
    {.address = 0x1000, .word = VTABLE},
    {.address = 0x1008, .word = OTHER}, /* within a block: its second word */
    {.address = 0x2000, .word = VTABLE},
    {.address = 0x3000, .word = OTHER},
    {.address = 0x4000, .word = VTABLE},
    {.address = UINT64_MAX - 7, .word = VTABLE}};
enum { SEEN = sizeof(seen) / sizeof(seen[0]) };

START_TEST(python_objects_hold_their_type_behind_references_or_the_collectors_words) {
    struct memlog_service_word held[] = {
        {.address = 0x1000, .word = OTHER}, /* in front of it */
        {.address = 0x1008, .word = VTABLE},
        {.address = 0x1018, .word = OTHER}, /* it has one already */
        {.address = 0x2018, .word = VTABLE},
        {.address = 0x3018, .word = OTHER}, /* behind the block's end */
        {.address = 0x4010, .word = OTHER}};
    const struct memlog_service_process_view view = {
        .words = {.items = held, .count = sizeof(held) / sizeof(held[0])},
        .words_were_read = true,
        .words_are_python = true};
    allocate(0x1000, 5, 0, 40, 1);
    allocate(0x2000, 5, 0, 32, 1);
    allocate(0x3000, 5, 0, 31, 1);
    allocate(0x4000, 5, 0, 100, 1);
    ml_first_words_begin(&words, &tracker, &view);
    ml_first_words_add(&words, &tracker, held, (uint32_t)view.words.count);
    ck_assert_str_eq(summed(), "5:V:72/2");
}
END_TEST

START_TEST(blocks_that_begin_with_a_word_are_summed_by_stack_and_word) {
    allocate(0x1000, 5, 0, 40, 1);
    allocate(0x2000, 5, 0, 24, 1);
    allocate(0x3000, 5, 0, 32, 1);
    allocate(0x4000, 3, 0, 16, 1);
    take(seen, SEEN);
    ck_assert_str_eq(summed(), "3:V:16/1 5:V:64/2 5:O:32/1");
    ck_assert(words.facts.were_read && !words.facts.are_cut);
    ck_assert_uint_eq(words.facts.read_bytes, 9);
}
END_TEST

START_TEST(a_block_that_was_freed_meanwhile_does_not_count) {
    allocate(0x1000, 5, 0, 40, 1);
    allocate(0x2000, 5, 0, 24, 1);
    allocate(0x4000, 5, 0, 24, 1);
    take(seen, SEEN);
    release(0x1000);
    release(0x2000);
    allocate(0x2000, 6, 0, 24, 1); /* another stack's now */
    ck_assert_str_eq(summed(), "5:V:24/1");
}
END_TEST

START_TEST(small_typed_and_reported_blocks_have_no_words) {
    allocate(0x1000, 5, 0, 7, 1);
    allocate(0x2000, 5, 9, 24, 1);
    allocate(ml_live_key(0x3000, 2), 5, 0, 24, 1);
    allocate(0x4000, 5, 0, 8, 1);
    take(seen, SEEN);
    ck_assert_str_eq(summed(), "5:V:8/1");
}
END_TEST

START_TEST(a_sampled_block_stands_for_more) {
    struct ml_snapshot_word *sums = NULL;
    uint32_t count = 0;
    allocate(0x1000, 5, 0, 40, 10);
    take(seen, SEEN);
    ck_assert(ml_first_words_sum(&words, &tracker, no_rest, &sums, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(sums[0].live_bytes, 400);
    ck_assert_uint_eq(sums[0].live_blocks, 10);
    /* 400 (400 - 40) and 10 (10 - 1), their roots in 1/256. */
    ck_assert_uint_eq(sums[0].live_bytes_error, 97145);
    ck_assert_uint_eq(sums[0].live_blocks_error, 2428);
    free(sums);
}
END_TEST

START_TEST(at_its_end_a_process_keeps_its_sums) {
    allocate(0x1000, 5, 0, 40, 1);
    take(seen, SEEN);
    ml_first_words_settle(&words, &tracker);
    ml_tracker_drop_blocks(&tracker);
    ck_assert_str_eq(summed(), "5:V:40/1");
    ck_assert_uint_eq(words.count, 0);
}
END_TEST

START_TEST(a_later_reading_takes_the_place_of_an_earlier_one) {
    allocate(0x1000, 5, 0, 40, 1);
    allocate(0x3000, 5, 0, 32, 1);
    take(seen, SEEN);
    take(&seen[3], 1);
    ck_assert_str_eq(summed(), "5:O:32/1");
}
END_TEST

static void count_rest(void *context) {
    (*(uint32_t *)context)++;
}

/* More than are summed at once; all of them are of two stacks and two words. */
START_TEST(many_blocks_are_summed_in_pieces_with_rests) {
    enum { MANY = 50000 };
    static struct memlog_service_word many[MANY];
    struct ml_snapshot_word *sums = NULL;
    uint32_t count = 0;
    uint32_t rests = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        many[i] = (struct memlog_service_word
        ){.address = 0x10000 + 64 * (uint64_t)i, .word = i % 3 == 0 ? OTHER : VTABLE};
        allocate(many[i].address, 5 + i % 2, 0, 40, 1);
    }
    take(many, MANY);
    const struct ml_words_rest rest = {.take = count_rest, .context = &rests};
    ck_assert(ml_first_words_sum(&words, &tracker, rest, &sums, &count));
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_ge(rests, 6);
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_eq(sums[i].node, 5 + i / 2);
        ck_assert_uint_eq(sums[i].word, i % 2 == 0 ? VTABLE : OTHER);
        ck_assert_uint_eq(sums[i].live_bytes, 40 * sums[i].live_blocks);
        blocks += sums[i].live_blocks;
    }
    ck_assert_uint_eq(blocks, MANY);
    free(sums);
}
END_TEST

START_TEST(without_room_there_are_none_and_it_says_so) {
    allocate(0x1000, 5, 0, 40, 1);
    budget.max_bytes = budget.used_bytes;
    take(seen, SEEN);
    ck_assert(words.facts.are_cut);
    ck_assert_str_eq(summed(), "");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("first_words");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, python_objects_hold_their_type_behind_references_or_the_collectors_words);
    tcase_add_test(tests, blocks_that_begin_with_a_word_are_summed_by_stack_and_word);
    tcase_add_test(tests, a_block_that_was_freed_meanwhile_does_not_count);
    tcase_add_test(tests, small_typed_and_reported_blocks_have_no_words);
    tcase_add_test(tests, a_sampled_block_stands_for_more);
    tcase_add_test(tests, at_its_end_a_process_keeps_its_sums);
    tcase_add_test(tests, a_later_reading_takes_the_place_of_an_earlier_one);
    tcase_add_test(tests, many_blocks_are_summed_in_pieces_with_rests);
    tcase_add_test(tests, without_room_there_are_none_and_it_says_so);
    return run_suite("service/first_words", tests);
}
