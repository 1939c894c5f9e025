#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/service/heap/checks.h"
#include "tests/suite.h"

#include "service/heap/live_map.h"

enum { KEYS = 3000 };

enum { SEEDS = FEWER_IF_SANITIZED(10) };

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

/* The same blocks, plainly: [i] is of key_of(i). */
static struct ml_live_block model[KEYS];
static bool model_live[KEYS];

static uint64_t key_of(uint32_t index) {
    const uint64_t odd = index % 7 == 0 ? index % 5 : 0;
    return ml_live_key(16 + 16 * (uint64_t)index + odd, index % 3);
}

static struct ml_live_block any_block(void) {
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
    return block;
}

static void remove_as_the_model(uint32_t index) {
    struct ml_live_block out;
    ck_assert_int_eq(take(key_of(index), &out), model_live[index]);
    if (model_live[index]) {
        ck_assert_uint_eq(out.weight_bytes, model[index].weight_bytes);
        ck_assert_uint_eq(out.weight_blocks, model[index].weight_blocks);
        ck_assert_uint_eq(out.size_bytes, model[index].size_bytes);
        ck_assert_int_eq(out.sampled, model[index].sampled);
        ck_assert_uint_eq(out.cell, model[index].cell);
    }
    model_live[index] = false;
}

/* One block comes or goes; of so many in a hundred it goes. */
static void change_one(uint32_t removes) {
    const uint32_t index = pick(KEYS);
    const struct ml_live_block block = any_block();
    if (pick(100) < removes) {
        remove_as_the_model(index);
    } else {
        put(key_of(index), &block, model_live[index]);
        model[index] = block;
        model_live[index] = true;
    }
}

/* What a walk has shown. */
static uint32_t shown[KEYS];
static size_t shown_count;

static bool
note_shown(void *context, uint64_t address, unsigned heap, const struct ml_live_block *block) {
    (void)context;
    shown_count++;
    for (uint32_t i = (uint32_t)(address / 16) - 1; i < KEYS; i += KEYS) {
        ck_assert_uint_eq(ml_live_key(address, heap), key_of(i));
        ck_assert(model_live[i]);
        ck_assert_uint_eq(block->size_bytes, model[i].size_bytes);
        ck_assert_uint_eq(block->weight_bytes, model[i].weight_bytes);
        ck_assert_uint_eq(block->cell, model[i].cell);
        shown[i]++;
    }
    return true;
}

static void check_walk(void) {
    memset(shown, 0, sizeof(shown));
    shown_count = 0;
    ml_live_map_walk(&map, note_shown, NULL);
    ck_assert_uint_eq(shown_count, map.count);
    for (uint32_t i = 0; i < KEYS; i++) {
        ck_assert_uint_eq(shown[i], model_live[i] ? 1 : 0);
    }
}

START_TEST(agrees_with_a_plain_table_over_random_puts_and_removes) {
    memset(model_live, 0, sizeof(model_live));
    for (int i = 0; i < 200000; i++) {
        /* The share of removes swings, so that the map grows, empties and is trimmed. */
        change_one((i / 20000) % 2 == 0 ? 30U : 90U);
        if (i % 5000 == 0) {
            ck_assert(ml_live_map_check(&map));
            trim();
            ck_assert(ml_live_map_check(&map));
            check_walk();
        }
    }
}
END_TEST

/* Begin to grow, wherever the map is: as if it were full. */
static void force_growth(void) {
    if (map.change == ML_LIVE_SETTLED && map.lines_count > 0 && map.lines_count < 4000) {
        map.count_max = map.count;
    }
}

START_TEST(agrees_with_a_plain_table_while_growth_begins_and_turns_at_any_moment) {
    unsigned changes[3] = {0};
    unsigned grown = 0;
    memset(model_live, 0, sizeof(model_live));
    random_state = 1000 + (uint64_t)_i;
    map.step_lines = 2U << pick(6);
    for (int i = 0; i < 30000; i++) {
        const enum ml_live_change before = map.change;
        change_one((i / 3000) % 2 == 0 ? 30U : 80U);
        grown += before == ML_LIVE_GROWING && map.change == ML_LIVE_SETTLED;
        changes[map.change]++;
        if (pick(50) == 0) {
            force_growth();
        }
        /* Trimmed as if it had been low for long: less than a sixth of it is in use, mostly. */
        if (pick(200) == 0 && map.change == ML_LIVE_GROWING && map.count < map.few_count) {
            map.change = ML_LIVE_SHRINKING;
            map.count_max = map.few_count * 103 / 30;
        }
        ck_assert(i % 16 != 0 || ml_live_map_check(&map));
        if (i % 256 == 0) {
            check_walk();
        }
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        remove_as_the_model(i);
    }
    ck_assert(ml_live_map_check(&map));
    ck_assert_uint_eq(map.count, 0);
    ck_assert_uint_gt(grown, 5);
    ck_assert_uint_gt(changes[ML_LIVE_GROWING], 50);
    ck_assert_uint_gt(changes[ML_LIVE_SHRINKING], 0);
}
END_TEST

static bool
note_weight(void *context, uint64_t address, unsigned heap, const struct ml_live_block *block) {
    ck_assert_uint_eq(block->weight_bytes, (address ^ address >> 20 ^ heap) % 100000);
    return ++*(size_t *)context != 100;
}

START_TEST(a_walk_tells_any_address_below_2_to_the_48) {
    enum { BLOCKS = 20000 };
    size_t count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const uint64_t address = (((uint64_t)pick(1U << 24) << 24 | pick(1U << 24)) | 8) & ~7ULL;
        const unsigned heap = pick(256);
        struct ml_live_block out;
        const struct ml_live_block block = {
            .weight_bytes = (address ^ address >> 20 ^ heap) % 100000, .weight_blocks = 1};
        const uint64_t key = ml_live_key(address, heap);
        ck_assert_int_eq(ml_live_map_reserve(&map, 1), ML_OK);
        (void)ml_live_map_put(&map, key, ml_live_map_hash(&map, key), &block, &out);
    }
    ml_live_map_walk(&map, note_weight, &count);
    ck_assert_uint_eq(count, 100); /* and there it was told to end */
    ml_live_map_walk(&map, note_weight, &count);
    ck_assert_uint_eq(count, 100 + map.count);
}
END_TEST

/* Blocks moved so far, by growing and shrinking. */
static uint64_t moved(void) {
    return map.moved + map.overflow.moved;
}

START_TEST(one_step_of_growing_or_shrinking_moves_a_bounded_number_of_blocks) {
    enum { BLOCKS = 500000, BATCH = 64 };
    /* Eight lines for each block asked for, of five slots; the turned away among them, and those
     * that go to a larger table of these meanwhile: as many again, and more than there ever are. */
    const uint64_t most = 2 * BATCH * 8 * ML_LIVE_LINE_SLOTS;
    const struct ml_live_block block = {.weight_bytes = 100, .weight_blocks = 1};
    struct ml_live_block out;
    uint64_t all = 0;
    for (uint64_t i = 1; i <= BLOCKS; i++) {
        if (i % BATCH == 1) {
            const uint64_t before = moved();
            ck_assert_int_eq(ml_live_map_reserve(&map, BATCH), ML_OK);
            ck_assert_uint_le(moved() - before, most);
            all += moved() - before;
        }
        ck_assert(!ml_live_map_put(&map, i * 16, ml_live_map_hash(&map, i * 16), &block, &out));
    }
    ck_assert_uint_gt(all, 2 * BLOCKS); /* so it has grown, and that was counted */
    for (uint64_t i = 11; i <= BLOCKS; i++) {
        ck_assert(take(i * 16, &out));
    }
    const uint64_t full_bytes = budget.used_bytes;
    for (int i = 0; i < 200; i++) {
        const uint64_t before = moved();
        ml_live_map_trim(&map);
        ck_assert_uint_le(moved() - before, 10);
    }
    ck_assert_uint_lt(budget.used_bytes, full_bytes / 100);
    ck_assert(ml_live_map_check(&map));
}
END_TEST

START_TEST(a_live_block_takes_no_more_than_24_bytes) {
    const struct ml_live_block block = {.weight_bytes = 100, .weight_blocks = 1};
    uint64_t above = 0;
    for (uint64_t i = 1; i <= 200000; i++) {
        put(i * 32, &block, false);
        if (i >= 10000) {
            /* A little more at the moments when the lines have just become more, and the table of
             * those turned away is there twice. */
            above += budget.used_bytes > i * 24;
            ck_assert_uint_le(budget.used_bytes, i * 25);
            ck_assert_uint_eq(ml_live_map_bytes(&map), budget.used_bytes);
        }
    }
    ck_assert_uint_le(above, 2000);
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
    ck_assert_uint_gt(ml_live_overflow_count(&map.overflow), 500);
    ck_assert(ml_live_map_check(&map));
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert(take(keys[i], &out));
        ck_assert_uint_eq(out.weight_bytes, i);
        ck_assert(!take(keys[i], &out));
        ck_assert(i % 100 != 0 || ml_live_map_check(&map));
    }
    ck_assert_uint_eq(ml_live_overflow_count(&map.overflow), 0);
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

START_TEST(growing_that_runs_out_of_memory_half_way_goes_on_when_there_is_some) {
    static uint64_t keys[4000];
    struct ml_live_block out;
    ck_assert_int_eq(ml_live_map_reserve(&map, 1600), ML_OK);
    ml_live_overflow_shrink(&map.overflow, 0);
    const size_t lines_count = map.lines_count;
    const size_t grown_count = (lines_count + lines_count / 4) / 30 * 30;
    const uint32_t count = fill_for_crowding(keys, lines_count, grown_count);
    /* The lines' memory is there, so that what is refused is that of those turned away. */
    map.lines = ml_budget_grow_table(
        &budget, map.lines, lines_count * sizeof(*map.lines), grown_count * sizeof(*map.lines)
    );
    map.lines_capacity = grown_count;
    map.step_lines = 8;
    uint32_t refused = 0;
    uint64_t left_bytes = 0;
    for (; map.lines_count == lines_count || map.split > 0; left_bytes += 20) {
        budget.max_bytes = budget.used_bytes + left_bytes;
        refused += ml_live_map_reserve(&map, 1) != ML_OK;
        ck_assert(ml_live_map_check(&map));
        ck_assert_uint_eq(map.count, count);
        map.count_max = map.count; /* another one, at once */
        ck_assert_uint_lt(left_bytes, 1 << 20);
    }
    ck_assert_uint_eq(map.lines_count, grown_count);
    ck_assert_uint_gt(refused, 1);
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
    TCase *tcase = tcase_create("live_map");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60); /* slow where many run */
    tcase_add_test(tcase, agrees_with_a_plain_table_over_random_puts_and_removes);
    tcase_add_test(tcase, a_live_block_takes_no_more_than_24_bytes);
    tcase_add_test(tcase, blocks_that_all_belong_at_one_place_are_all_found);
    tcase_add_loop_test(
        tcase, agrees_with_a_plain_table_while_growth_begins_and_turns_at_any_moment, 0, SEEDS
    );
    tcase_add_test(tcase, a_walk_tells_any_address_below_2_to_the_48);
    tcase_add_test(tcase, one_step_of_growing_or_shrinking_moves_a_bounded_number_of_blocks);
    tcase_add_test(tcase, growing_that_runs_out_of_memory_half_way_goes_on_when_there_is_some);
    tcase_add_test(tcase, memory_comes_back_when_few_blocks_are_left);
    tcase_add_test(tcase, without_memory_the_map_stays_as_it_is);
    return run_suite("service/live_map", tcase);
}
