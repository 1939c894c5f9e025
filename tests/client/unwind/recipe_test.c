#include "client/unwind/recipe.h"

#include <pthread.h>
#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

enum { THREADS = 4, ROUNDS = 400000, ADDRESSES = 24 };

static struct ml_recipes recipes;

/* Each address and generation has one recipe that is right. */
static uint64_t right_for(uintptr_t pc, uint64_t generation) {
    return ml_recipe_make(
        ML_RECIPE_SP, (pc ^ generation * 77) & 0xffff, pc & 0xfff, (uint32_t)(pc * 31 & 0xffff)
    );
}

START_TEST(keeps_every_field_of_a_recipe) {
    uint64_t recipe = ml_recipe_make(ML_RECIPE_FP, ML_RECIPE_CFA_WORDS_MAX, 0xabc, 0xfedc);
    ml_recipes_put(&recipes, 0x7fffdeadbeef, 3, recipe);
    uint64_t found = ml_recipes_find(&recipes, 0x7fffdeadbeef, 3);
    ck_assert_uint_eq(found, recipe);
    ck_assert_int_eq(ml_recipe_kind(found), ML_RECIPE_FP);
    ck_assert_uint_eq(ml_recipe_cfa_bytes(found), ML_RECIPE_CFA_WORDS_MAX * 8);
    ck_assert_uint_eq(ml_recipe_fp_words(found), 0xabc);
    ck_assert_uint_eq(ml_recipe_module(found), 0xfedc);
}
END_TEST

START_TEST(forgets_other_generations_and_what_was_wiped) {
    ml_recipes_put(&recipes, 0x401000, 7, right_for(0x401000, 7));
    ck_assert_uint_eq(ml_recipes_find(&recipes, 0x401000, 8), 0);
    ck_assert_uint_eq(ml_recipes_find(&recipes, 0x401001, 7), 0);
    ml_recipes_put(&recipes, 0x401000, 8, right_for(0x401000, 8));
    ck_assert_uint_eq(ml_recipes_find(&recipes, 0x401000, 8), right_for(0x401000, 8));
    ck_assert_uint_eq(ml_recipes_find(&recipes, 0x401000, 7), 0);
    ml_recipes_wipe(&recipes);
    ck_assert_uint_eq(ml_recipes_find(&recipes, 0x401000, 8), 0);
}
END_TEST

START_TEST(leaves_addresses_beyond_48_bits_alone) {
    uintptr_t pc = (uintptr_t)1 << 50 | 0x1234;
    ml_recipes_put(&recipes, pc, 0, right_for(pc, 0));
    ck_assert_uint_eq(ml_recipes_find(&recipes, pc, 0), 0);
    ck_assert_uint_eq(ml_recipes_find(&recipes, 0x1234, 0), 0);
}
END_TEST

START_TEST(a_writer_that_vanished_leaves_a_miss_and_nothing_to_wait_for) {
    struct ml_recipe_slot *set = recipes.slots[ml_recipe_set(0x5000)];
    for (int way = 0; way < ML_RECIPE_WAYS; way++) {
        atomic_store(&set[way].key, (0x5000 + (uintptr_t)way) | ML_RECIPE_KEY_BUSY);
    }
    ml_recipes_put(&recipes, 0x5001, 0, right_for(0x5001, 0));
    ck_assert_uint_eq(ml_recipes_find(&recipes, 0x5001, 0), 0);
}
END_TEST

static void *hammer(void *context) {
    uint64_t random = (uintptr_t)context * UINT64_C(0x9e3779b97f4a7c15) | 1;
    uintptr_t wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uintptr_t pc = 0x700000001000 + random % ADDRESSES; /* one set: they push each other out */
        uint64_t generation = random >> 40 & 3;
        uint64_t found = ml_recipes_find(&recipes, pc, generation);
        if (found == 0) {
            ml_recipes_put(&recipes, pc, generation, right_for(pc, generation));
        } else {
            wrong += found != right_for(pc, generation);
        }
    }
    return (void *)wrong;
}

START_TEST(threads_that_push_each_other_out_never_read_a_mixture) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("recipe");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, keeps_every_field_of_a_recipe);
    tcase_add_test(tcase, forgets_other_generations_and_what_was_wiped);
    tcase_add_test(tcase, leaves_addresses_beyond_48_bits_alone);
    tcase_add_test(tcase, a_writer_that_vanished_leaves_a_miss_and_nothing_to_wait_for);
    tcase_add_test(tcase, threads_that_push_each_other_out_never_read_a_mixture);
    return run_suite("client/unwind_recipe", tcase);
}
