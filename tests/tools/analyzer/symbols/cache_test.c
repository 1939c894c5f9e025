#include "tools/analyzer/symbols/cache.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

/* As a symbolizer would say them. */
static const struct ml_symbol inlined[] = {
    {.function = "in()", .linkage = "_Z2inv", .file = "/a.cc", .line = 3, .inlined = true},
    {.function = "out()", .linkage = "_Z3outv", .file = "/a.cc", .line = 7},
};
static const struct ml_symbol plain[] = {{.function = "main", .linkage = "main", .file = ""}};

static uint8_t *filled(uint64_t state, size_t *out_bytes) {
    struct ml_symbol_cache cache = {
        .state = state, .text = {.address = 0x1000, .offset = 0x2000, .size_bytes = 0x3000}};
    uint8_t *bytes = NULL;

    ck_assert(ml_symbol_cache_add(&cache, 0x40, plain, 1));
    ck_assert(ml_symbol_cache_add(&cache, 0x20, inlined, 2));
    ck_assert(ml_symbol_cache_add(&cache, 0x30, NULL, 0));
    bytes = ml_symbol_cache_encode(&cache, out_bytes);
    ck_assert_ptr_nonnull(bytes);
    ml_symbol_cache_fini(&cache);
    return bytes;
}

static void same_symbol(const struct ml_symbol *a, const struct ml_symbol *b) {
    ck_assert_str_eq(a->function, b->function);
    ck_assert_str_eq(a->linkage, b->linkage);
    ck_assert_str_eq(a->file, b->file);
    ck_assert_uint_eq(a->line, b->line);
    ck_assert_int_eq(a->inlined, b->inlined);
}

static void holds_what_was_filled_in(const struct ml_symbol_cache *cache) {
    const struct ml_cached_place *place = ml_symbol_cache_find(cache, 0x20);

    ck_assert_ptr_nonnull(place);
    ck_assert_uint_eq(place->symbols_count, 2);
    same_symbol(&cache->symbols[place->first_symbol], &inlined[0]);
    same_symbol(&cache->symbols[place->first_symbol + 1], &inlined[1]);
    place = ml_symbol_cache_find(cache, 0x40);
    ck_assert_ptr_nonnull(place);
    ck_assert_uint_eq(place->symbols_count, 1);
    same_symbol(&cache->symbols[place->first_symbol], &plain[0]);
    /* That nothing is known there is known, too. */
    place = ml_symbol_cache_find(cache, 0x30);
    ck_assert_ptr_nonnull(place);
    ck_assert_uint_eq(place->symbols_count, 0);
    ck_assert_ptr_null(ml_symbol_cache_find(cache, 0x21));
    ck_assert_uint_eq(cache->text.address, 0x1000);
    ck_assert_uint_eq(cache->text.offset, 0x2000);
    ck_assert_uint_eq(cache->text.size_bytes, 0x3000);
}

START_TEST(what_was_kept_is_found_again) {
    struct ml_symbol_cache cache = {0};
    size_t count = 0;
    uint8_t *bytes = filled(0, &count);

    ck_assert(ml_symbol_cache_decode(&cache, bytes, count, 77));
    holds_what_was_filled_in(&cache);
    ml_symbol_cache_fini(&cache);
    free(bytes);
}
END_TEST

START_TEST(what_is_added_later_stands_beside_it) {
    struct ml_symbol_cache cache = {0};
    size_t count = 0;
    size_t more_count = 0;
    uint8_t *bytes = filled(0, &count);
    uint8_t *more = NULL;

    ck_assert(ml_symbol_cache_decode(&cache, bytes, count, 0));
    ck_assert(ml_symbol_cache_add(&cache, 0x10, plain, 1));
    more = ml_symbol_cache_encode(&cache, &more_count);
    ml_symbol_cache_fini(&cache);
    free(bytes);
    ck_assert(ml_symbol_cache_decode(&cache, more, more_count, 0));
    holds_what_was_filled_in(&cache);
    ck_assert_ptr_nonnull(ml_symbol_cache_find(&cache, 0x10));
    ml_symbol_cache_fini(&cache);
    free(more);
}
END_TEST

START_TEST(what_held_for_a_time_is_none_behind_it) {
    struct ml_symbol_cache cache = {0};
    size_t count = 0;
    uint8_t *bytes = filled(5, &count);

    ck_assert(!ml_symbol_cache_decode(&cache, bytes, count, 7));
    ck_assert(!ml_symbol_cache_decode(&cache, bytes, count, 0));
    ck_assert_ptr_null(ml_symbol_cache_find(&cache, 0x20));
    ck_assert(ml_symbol_cache_decode(&cache, bytes, count, 5));
    ck_assert_uint_eq(cache.state, 5);
    holds_what_was_filled_in(&cache);
    ml_symbol_cache_fini(&cache);
    free(bytes);
}
END_TEST

START_TEST(a_flipped_bit_or_a_missing_end_makes_it_none) {
    struct ml_symbol_cache cache = {0};
    size_t count = 0;
    uint8_t *bytes = filled(0, &count);

    for (size_t bit = 0; bit < count * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert(!ml_symbol_cache_decode(&cache, bytes, count, 0));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t cut = 0; cut < count; cut++) {
        ck_assert(!ml_symbol_cache_decode(&cache, bytes, cut, 0));
    }
    ck_assert(ml_symbol_cache_decode(&cache, bytes, count, 0));
    ml_symbol_cache_fini(&cache);
    free(bytes);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, what_was_kept_is_found_again);
    tcase_add_test(tests, what_is_added_later_stands_beside_it);
    tcase_add_test(tests, what_held_for_a_time_is_none_behind_it);
    tcase_add_test(tests, a_flipped_bit_or_a_missing_end_makes_it_none);
    return run_suite("tools/symbol_cache", tests);
}
