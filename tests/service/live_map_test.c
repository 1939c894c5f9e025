#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "service/live_map.h"

enum { KEYS = 3000 };

static struct ml_budget budget;
static struct ml_live_map map;
static uint64_t random_state;

static uint32_t pick(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    random_state = 7;
    ml_live_map_init(&map, &budget, 1234);
}

static void tear_down(void) {
    ml_live_map_fini(&map);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

/* As many rounds as it takes. */
static void trim(void) {
    for (int i = 0; i < 100; i++) {
        ml_live_map_trim(&map);
    }
}

static bool take(uint64_t key, struct ml_live_block *out) {
    return ml_live_map_remove(&map, key, ml_live_map_hash(&map, key), out);
}

static void put(uint64_t key, const struct ml_live_block *block, bool there) {
    struct ml_live_block old;
    ck_assert_int_eq(ml_live_map_reserve(&map, 1), ML_OK);
    ck_assert_int_eq(ml_live_map_reserve_wide(&map), ML_OK);
    ck_assert_int_eq(ml_live_map_put(&map, key, ml_live_map_hash(&map, key), block, &old), there);
}

START_TEST(agrees_with_a_plain_table_over_random_puts_and_removes) {
    static struct ml_live_block blocks[KEYS];
    static bool live[KEYS];
    memset(live, 0, sizeof(live));
    for (int i = 0; i < 200000; i++) {
        /* The share of removes swings, so that the map grows, empties and is trimmed. */
        const uint32_t index = pick(KEYS);
        const uint64_t odd = index % 7 == 0 ? index % 5 : 0;
        const uint64_t key = ml_live_key(16 + 16 * (uint64_t)index + odd, index % 3);
        const bool remove = pick(100) < ((i / 20000) % 2 == 0 ? 30U : 90U);
        struct ml_live_block block = {
            .weight_bytes = pick(3) == 0 ? (uint64_t)pick(1U << 30) << 18 : pick(5000),
            .weight_blocks = 1,
            .cell = pick(ML_LIVE_CELLS_MAX),
            .sampled = pick(4) == 0,
        };
        block.size_bytes = block.weight_bytes;
        if (block.sampled) {
            block.weight_blocks = pick(1000) + 1;
            block.size_bytes = block.weight_bytes / block.weight_blocks;
        }
        if (remove) {
            struct ml_live_block out;
            ck_assert_int_eq(take(key, &out), live[index]);
            if (live[index]) {
                ck_assert_uint_eq(out.weight_bytes, blocks[index].weight_bytes);
                ck_assert_uint_eq(out.weight_blocks, blocks[index].weight_blocks);
                ck_assert_uint_eq(out.size_bytes, blocks[index].size_bytes);
                ck_assert_int_eq(out.sampled, blocks[index].sampled);
                ck_assert_uint_eq(out.cell, blocks[index].cell);
            }
        } else {
            put(key, &block, live[index]);
            blocks[index] = block;
        }
        live[index] = !remove;
        if (i % 5000 == 0) {
            ck_assert(ml_live_map_check(&map));
            trim();
            ck_assert(ml_live_map_check(&map));
        }
    }
}
END_TEST

START_TEST(a_live_block_takes_no_more_than_24_bytes) {
    const struct ml_live_block block = {.weight_bytes = 100, .weight_blocks = 1};
    for (uint64_t i = 1; i <= 200000; i++) {
        put(i * 32, &block, false);
        if (i >= 10000) {
            ck_assert_uint_le(budget.used_bytes, i * 24);
            ck_assert_uint_eq(ml_live_map_bytes(&map), budget.used_bytes);
        }
    }
}
END_TEST

/* A new key whose block belongs into that part of the whole, in units of 1/64. */
static uint64_t key_of_part(uint64_t part) {
    for (;;) {
        const uint64_t key = ((uint64_t)pick(1U << 30) + 1) * 16;
        if (ml_live_map_hash(&map, key) >> 58 == part) {
            return key;
        }
    }
}

START_TEST(blocks_that_all_belong_at_one_place_are_all_found) {
    static uint64_t keys[1000];
    struct ml_live_block block = {.weight_blocks = 1};
    struct ml_live_block out;
    for (uint32_t i = 0; i < 1000; i++) {
        keys[i] = key_of_part(63);
        block.weight_bytes = i;
        put(keys[i], &block, false);
    }
    ck_assert_uint_gt(map.away.count, 500);
    ck_assert(ml_live_map_check(&map));
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert(take(keys[i], &out));
        ck_assert_uint_eq(out.weight_bytes, i);
        ck_assert(!take(keys[i], &out));
        ck_assert(i % 100 != 0 || ml_live_map_check(&map));
    }
    ck_assert_uint_eq(map.away.count, 0);
}
END_TEST

/* Fill a map such that growing turns many away who are at home now: into every pair's worth of the
 * larger one as many as two pairs of the smaller one hold. */
static uint32_t fill_for_crowding(uint64_t *keys, size_t lines_count, size_t grown_count) {
    static unsigned pairs[1000];
    const struct ml_live_block block = {.weight_bytes = 100, .weight_blocks = 1};
    uint32_t count = 0;
    memset(pairs, 0, sizeof(pairs));
    while (map.count < map.count_max) {
        const uint64_t key = ((uint64_t)pick(1U << 30) + 1) * 16;
        const uint64_t hash = ml_live_map_hash(&map, key);
        unsigned *pair = &pairs[ml_live_home(hash, lines_count) / 2];
        const size_t grown_pair = ml_live_home(hash, grown_count) / 2;
        if ((grown_pair % 4 == 1 || grown_pair % 4 == 3) && *pair < 10) {
            *pair += 1;
            put(key, &block, false);
            keys[count++] = key;
        }
    }
    return count;
}

START_TEST(growing_that_runs_out_of_memory_half_way_is_undone) {
    static uint64_t keys[4000];
    struct ml_live_block out;
    ck_assert_int_eq(ml_live_map_reserve(&map, 1), ML_OK);
    size_t lines_count = map.lines_count;
    while (lines_count < 400) {
        ck_assert_int_eq(ml_live_map_reserve(&map, map.count_max + 1), ML_OK);
        lines_count = map.lines_count;
    }
    const size_t grown_count = (lines_count + lines_count / 4) / 30 * 30;
    const uint32_t count = fill_for_crowding(keys, lines_count, grown_count);
    /* The lines' memory is there, so that what is refused is that of those turned away. */
    map.lines = ml_budget_grow_table(
        &budget, map.lines, lines_count * sizeof(*map.lines), grown_count * sizeof(*map.lines)
    );
    map.lines_capacity = grown_count;
    uint32_t undone = 0;
    enum ml_status status = ML_ENV_MEMORY;
    for (uint64_t left_bytes = 0; status != ML_OK; left_bytes += 500) {
        budget.max_bytes = budget.used_bytes + left_bytes;
        status = ml_live_map_reserve(&map, 1);
        undone += status != ML_OK;
        ck_assert_uint_eq(map.lines_count, status == ML_OK ? grown_count : lines_count);
        ck_assert(ml_live_map_check(&map));
        ck_assert_uint_eq(map.count, count);
        ck_assert_uint_lt(left_bytes, 1 << 20);
    }
    ck_assert_uint_gt(undone, 1);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(take(keys[i], &out));
    }
}
END_TEST

START_TEST(memory_comes_back_when_few_blocks_are_left) {
    const struct ml_live_block block = {.weight_bytes = 100, .weight_blocks = 1};
    struct ml_live_block out;
    for (uint64_t i = 1; i <= 100000; i++) {
        put(i * 16, &block, false);
    }
    const uint64_t full_bytes = budget.used_bytes;
    for (uint64_t i = 11; i <= 100000; i++) {
        ck_assert(take(i * 16, &out));
    }
    trim();
    ck_assert_uint_lt(budget.used_bytes, full_bytes / 100);
    for (uint64_t i = 1; i <= 10; i++) {
        ck_assert(take(i * 16, &out));
    }
}
END_TEST

START_TEST(without_memory_the_map_stays_as_it_is) {
    const struct ml_live_block block = {.weight_bytes = 100, .weight_blocks = 1};
    struct ml_live_block old;
    uint64_t i = 1;
    budget.max_bytes = 10000;
    while (ml_live_map_reserve(&map, 1) == ML_OK) {
        const uint64_t key = i++ * 16;
        ck_assert(!ml_live_map_put(&map, key, ml_live_map_hash(&map, key), &block, &old));
    }
    ck_assert_uint_gt(i, 100);
    ck_assert_uint_le(budget.used_bytes, 10000);
    ck_assert(ml_live_map_check(&map));
    ck_assert(take(16, &old));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("service/live_map");
    TCase *tcase = tcase_create("live_map");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, agrees_with_a_plain_table_over_random_puts_and_removes);
    tcase_add_test(tcase, a_live_block_takes_no_more_than_24_bytes);
    tcase_add_test(tcase, blocks_that_all_belong_at_one_place_are_all_found);
    tcase_add_test(tcase, growing_that_runs_out_of_memory_half_way_is_undone);
    tcase_add_test(tcase, memory_comes_back_when_few_blocks_are_left);
    tcase_add_test(tcase, without_memory_the_map_stays_as_it_is);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
