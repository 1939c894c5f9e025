#include "tools/analyzer/model/search.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

/* The key neither first nor last, so that strides and offsets matter. */
struct item {
    uint32_t before;
    uint64_t key;
    uint8_t behind;
};

enum { ITEMS_MAX = 9 };

/* 0, 2, 2, 4, 6, 6, 6, 8, UINT64_MAX: doubled ones, both ends, holes. */
static const struct item items[ITEMS_MAX] = {
    {1, 0, 1},
    {2, 2, 2},
    {3, 2, 3},
    {4, 4, 4},
    {5, 6, 5},
    {6, 6, 6},
    {7, 6, 7},
    {8, 8, 8},
    {9, UINT64_MAX, 9},
};

START_TEST(of_none_there_is_none) {
    const struct item *nothing = NULL;

    ck_assert_uint_eq(ml_keys_below(ML_KEYS(nothing, 0, key), 5), 0);
    ck_assert_uint_eq(ml_keys_until(ML_KEYS(nothing, 0, key), UINT64_MAX), 0);
}
END_TEST

/* By counting one by one, for every length and every key around those that are there. */
START_TEST(both_count_what_one_by_one_counts) {
    static const uint64_t wanted[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, UINT64_MAX - 1, UINT64_MAX};

    for (size_t count = 0; count <= ITEMS_MAX; count++) {
        for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
            size_t below = 0;
            size_t until = 0;

            for (size_t i = 0; i < count; i++) {
                below += items[i].key < wanted[w];
                until += items[i].key <= wanted[w];
            }
            ck_assert_uint_eq(ml_keys_below(ML_KEYS(items, count, key), wanted[w]), below);
            ck_assert_uint_eq(ml_keys_until(ML_KEYS(items, count, key), wanted[w]), until);
        }
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, of_none_there_is_none);
    tcase_add_test(tests, both_count_what_one_by_one_counts);
    return run_suite("tools/search", tests);
}
