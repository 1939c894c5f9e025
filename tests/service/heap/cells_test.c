#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"

#include "service/heap/cells.h"

static struct ml_budget budget;
static struct ml_cells cells;

static void set_up(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    ml_cells_init(&cells, &budget);
}

static void tear_down(void) {
    ml_cells_fini(&cells);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

/* As programs have them: nodes beside each other, a few size classes each. */
static uint64_t key_of(uint32_t index) {
    return ml_cell_key(1 + index / 3, 0, 0, 4 + index % 3);
}

static uint32_t make(uint64_t key) {
    uint32_t number = UINT32_MAX;
    ck_assert_int_eq(ml_cells_make(&cells, key, ml_cells_hash(key), &number), ML_OK);
    ck_assert(ml_cells_is(&cells, number, key));
    return number;
}

START_TEST(a_cell_keeps_its_number_and_is_guessed) {
    uint32_t guessed = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        ck_assert_uint_eq(make(key_of(i)), i);
    }
    for (uint32_t i = 0; i < 20000; i++) {
        ck_assert_uint_eq(make(key_of(i)), i);
        guessed += ml_cells_guess(&cells, ml_cells_hash(key_of(i))) == i;
    }
    ck_assert_uint_eq(cells.count, 20000);
    ck_assert_uint_gt(guessed, 19000);
}
END_TEST

/* At its fullest the index has many cells beside their bucket: whoever is asked for is guessed from
 * then on, and all are found still. */
START_TEST(a_cell_that_is_asked_for_is_guessed_the_next_time) {
    const uint32_t count = 26100; /* nearly four fifths of 2^15 */
    uint32_t elsewhere = 0;
    uint32_t guessed = 0;
    for (uint32_t i = 0; i < count; i++) {
        (void)make(key_of(i));
    }
    ck_assert_uint_eq(cells.index_capacity, 1 << 15);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < count; i++) {
            elsewhere += ml_cells_guess(&cells, ml_cells_hash(key_of(i))) != i;
            ck_assert_uint_eq(make(key_of(i)), i);
            guessed += ml_cells_guess(&cells, ml_cells_hash(key_of(i))) == i;
        }
    }
    ck_assert_uint_gt(elsewhere, 1000);
    ck_assert_uint_gt(guessed, 3 * count / 100 * 98);
}
END_TEST

START_TEST(a_cell_takes_no_more_than_100_bytes) {
    for (uint32_t i = 0; i < 200000; i++) {
        (void)make(key_of(i));
        if (i >= 1000) {
            ck_assert_uint_le(budget.used_bytes, (uint64_t)(i + 1) * 100);
        }
    }
}
END_TEST

START_TEST(without_memory_the_cells_stay_as_they_are) {
    enum ml_status status = ML_OK;
    uint32_t number = 0;
    uint32_t count = 0;
    budget.max_bytes = 20000;
    while (status == ML_OK) {
        status = ml_cells_make(&cells, key_of(count), ml_cells_hash(key_of(count)), &number);
        count += status == ML_OK;
    }
    ck_assert_int_eq(status, ML_ENV_MEMORY);
    ck_assert_uint_gt(count, 100);
    ck_assert_uint_eq(cells.count, count);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert(ml_cells_is(&cells, i, key_of(i)));
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("cells");
    tcase_set_timeout(tcase, 60); /* not 4 s: with sanitizers, on a busy machine */
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_cell_keeps_its_number_and_is_guessed);
    tcase_add_test(tcase, a_cell_that_is_asked_for_is_guessed_the_next_time);
    tcase_add_test(tcase, a_cell_takes_no_more_than_100_bytes);
    tcase_add_test(tcase, without_memory_the_cells_stay_as_they_are);
    return run_suite("service/cells", tcase);
}
