/* Parts of a budget: what they take is taken of the whole, and whoever refuses is known. */
#include "service/limits/budget.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

enum { WHOLE_BYTES = 1000, PART_BYTES = 600 };

static struct ml_budget whole;
static struct ml_budget parts[2];

static void set_up(void) {
    whole = (struct ml_budget){.max_bytes = WHOLE_BYTES};
    for (int i = 0; i < 2; i++) {
        parts[i] = (struct ml_budget){.max_bytes = PART_BYTES, .whole = &whole};
    }
}

START_TEST(what_a_part_takes_is_taken_of_the_whole_and_comes_back) {
    void *block = ml_budget_new(&parts[0], 100);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq(parts[0].used_bytes, 100);
    ck_assert_uint_eq(whole.used_bytes, 100);
    block = ml_budget_resize(&parts[0], block, 100, 300);
    ck_assert_ptr_nonnull(block);
    void *table = ml_budget_new_table(&parts[1], 200);
    ck_assert_ptr_nonnull(table);
    ck_assert_uint_eq(parts[0].used_bytes, 300);
    ck_assert_uint_eq(parts[1].used_bytes, 200);
    ck_assert_uint_eq(whole.used_bytes, 500);
    ml_budget_free(&parts[0], block, 300);
    ml_budget_free_table(&parts[1], table, 200);
    ck_assert_uint_eq(parts[0].used_bytes + parts[1].used_bytes + whole.used_bytes, 0);
}
END_TEST

START_TEST(a_part_that_is_used_up_refuses_and_says_that_it_was_itself) {
    void *block = ml_budget_new(&parts[0], PART_BYTES);
    ck_assert_ptr_nonnull(block);
    ck_assert(!parts[0].over);
    ck_assert_ptr_null(ml_budget_new(&parts[0], 1));
    ck_assert(parts[0].over);
    ck_assert_uint_eq(whole.used_bytes, PART_BYTES);
    /* The other one has its own. */
    void *other = ml_budget_new(&parts[1], WHOLE_BYTES - PART_BYTES);
    ck_assert_ptr_nonnull(other);
    ck_assert(!parts[1].over);
    ml_budget_free(&parts[0], block, PART_BYTES);
    ml_budget_free(&parts[1], other, WHOLE_BYTES - PART_BYTES);
}
END_TEST

START_TEST(where_the_whole_refuses_the_part_is_as_before) {
    void *block = ml_budget_new(&parts[0], PART_BYTES);
    void *other = ml_budget_new(&parts[1], 300);
    parts[1].over = true;
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_nonnull(other);
    ck_assert_ptr_null(ml_budget_new(&parts[1], 200));
    ck_assert(!parts[1].over);
    ck_assert_ptr_null(ml_budget_resize(&parts[1], other, 300, 500));
    ck_assert_ptr_null(ml_budget_grow_table(&parts[1], NULL, 0, 200));
    ck_assert_uint_eq(parts[1].used_bytes, 300);
    ck_assert_uint_eq(whole.used_bytes, PART_BYTES + 300);
    ml_budget_free(&parts[0], block, PART_BYTES);
    ml_budget_free(&parts[1], other, 300);
    ck_assert_uint_eq(whole.used_bytes, 0);
}
END_TEST

/* Neither budget is at its end: the system is. */
START_TEST(what_the_system_refuses_is_nobodys_bound) {
    whole.max_bytes = UINT64_MAX;
    parts[0].max_bytes = UINT64_MAX;
    parts[0].over = true;
    ck_assert_ptr_null(ml_budget_new_table(&parts[0], SIZE_MAX / 2 - 1));
    ck_assert(!parts[0].over);
    ck_assert_uint_eq(parts[0].used_bytes + whole.used_bytes, 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("budget");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, what_a_part_takes_is_taken_of_the_whole_and_comes_back);
    tcase_add_test(tcase, a_part_that_is_used_up_refuses_and_says_that_it_was_itself);
    tcase_add_test(tcase, where_the_whole_refuses_the_part_is_as_before);
    tcase_add_test(tcase, what_the_system_refuses_is_nobodys_bound);
    return run_suite("service/budget", tcase);
}
