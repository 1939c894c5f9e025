#include "service/heap/variances.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_budget budget;
static struct ml_variances variances;

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    ml_variances_init(&variances, &budget);
}

static void tear_down(void) {
    ml_variances_fini(&variances);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

START_TEST(who_does_not_sample_has_none_and_pays_for_none) {
    ck_assert_ptr_null(ml_variances_of(&variances, 0));
    ck_assert_uint_eq(budget.used_bytes, 0);
    const struct ml_live_block exact = {.size_bytes = 48, .weight_bytes = 48, .weight_blocks = 1};
    const struct ml_variance_pair pair = ml_variance_of(&exact);
    ck_assert(pair.bytes == 0);
    ck_assert(pair.blocks == 0);
}
END_TEST

START_TEST(cells_keep_their_variances_while_more_get_room) {
    for (uint32_t count = 1; count <= 500; count++) {
        ck_assert_int_eq(ml_variances_reserve(&variances, count), ML_OK);
        struct ml_cell_variances *cell = ml_variances_of(&variances, count - 1);
        ck_assert_ptr_nonnull(cell);
        ck_assert(cell->live.bytes == 0 && cell->tree.blocks == 0);
        cell->live.bytes = count;
    }
    for (uint32_t cell = 0; cell < 500; cell++) {
        ck_assert(ml_variances_of(&variances, cell)->live.bytes == cell + 1);
    }
}
END_TEST

START_TEST(without_memory_what_was_there_stays) {
    ck_assert_int_eq(ml_variances_reserve(&variances, 1), ML_OK);
    ml_variances_of(&variances, 0)->total.bytes = 5;
    budget.max_bytes = budget.used_bytes;
    ck_assert_int_eq(ml_variances_reserve(&variances, 100000), ML_ENV_MEMORY);
    ck_assert(ml_variances_of(&variances, 0)->total.bytes == 5);
    ck_assert_ptr_null(ml_variances_of(&variances, 99999));
}
END_TEST

START_TEST(a_block_that_stands_for_more_adds_what_its_weight_says) {
    const struct ml_live_block block = {
        .size_bytes = 100, .weight_bytes = 1000, .weight_blocks = 10};
    struct ml_variance_pair sum = {0};
    ml_variance_add(&sum, ml_variance_of(&block));
    ck_assert(sum.bytes == 900000); /* w (w - s) */
    ck_assert(sum.blocks == 90);    /* n (n - 1) */
    ml_variance_add(&sum, ml_variance_of(&block));
    ml_variance_take(&sum, ml_variance_of(&block));
    ck_assert(sum.bytes == 900000 && sum.blocks == 90);
    ml_variance_take(&sum, ml_variance_of(&block));
    ck_assert(sum.bytes == 0 && sum.blocks == 0);
}
END_TEST

START_TEST(the_error_is_the_root_in_256ths) {
    ck_assert_uint_eq(ml_variance_error(0), 0);
    ck_assert_uint_eq(ml_variance_error(1), 256);
    ck_assert_uint_eq(ml_variance_error(2), 362); /* 256 * 1.41421 = 362.03 */
    ck_assert_uint_eq(ml_variance_error(900), 30 * 256);
    for (uint64_t root = 1; root < UINT64_C(1) << 54; root = root * 3 + 1) {
        const ml_variance square = (ml_variance)root * root;
        ck_assert_uint_eq(ml_variance_error(square), root << 8);
        ck_assert_uint_eq(ml_variance_error(square - 1) >> 8, root - 1);
    }
}
END_TEST

START_TEST(an_error_that_fits_in_no_figure_is_the_largest) {
    ck_assert_uint_eq(ml_variance_error((ml_variance)1 << 112), UINT64_MAX);
    ck_assert_uint_eq(ml_variance_error((ml_variance)1 << 110), UINT64_C(1) << 63);
    ck_assert_uint_eq(ml_variance_error(~(ml_variance)0), UINT64_MAX);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("variances");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, who_does_not_sample_has_none_and_pays_for_none);
    tcase_add_test(tcase, cells_keep_their_variances_while_more_get_room);
    tcase_add_test(tcase, without_memory_what_was_there_stays);
    tcase_add_test(tcase, a_block_that_stands_for_more_adds_what_its_weight_says);
    tcase_add_test(tcase, the_error_is_the_root_in_256ths);
    tcase_add_test(tcase, an_error_that_fits_in_no_figure_is_the_largest);
    return run_suite("service/heap/variances", tcase);
}
