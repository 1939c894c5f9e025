#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "tests/suite.h"

#include "service/workers/workers.h"

enum { ITEMS = 1000, PIECES = 300, WORKERS = 4 };

struct account {
    uint32_t done[ITEMS];   /* how often; each by whoever has the item */
    uint32_t before[ITEMS]; /* of the caller, seen by the workers */
    uint64_t by[WORKERS];   /* items, each worker's own */
    atomic_uint inside[WORKERS];
    atomic_bool shared; /* two were the same worker at the same time */
};

static void count_item(void *context, uint32_t item, unsigned worker) {
    struct account *account = context;
    if (atomic_fetch_add(&account->inside[worker], 1) != 0) {
        atomic_store(&account->shared, true);
    }
    account->done[item] = account->before[item] + 1;
    account->by[worker]++;
    atomic_fetch_sub(&account->inside[worker], 1);
}

START_TEST(every_item_is_done_once_and_seen_behind_it) {
    struct ml_workers *workers = ml_workers_new((unsigned)_i);
    struct account *account = calloc(1, sizeof(*account));
    ck_assert_ptr_nonnull(workers);
    ck_assert_ptr_nonnull(account);
    ck_assert_uint_eq(ml_workers_count(workers), (unsigned)_i);
    uint64_t items_sum = 0;
    for (uint32_t piece = 0; piece < PIECES; piece++) {
        const uint32_t items = piece % 5 == 0 ? piece % 3 : 1 + piece * 3;
        for (uint32_t i = 0; i < items; i++) {
            account->before[i] = piece;
        }
        ml_workers_run(workers, count_item, account, items);
        for (uint32_t i = 0; i < items; i++) {
            ck_assert_uint_eq(account->done[i], piece + 1);
        }
        items_sum += items;
    }
    for (int i = 0; i < WORKERS; i++) {
        items_sum -= account->by[i];
    }
    ck_assert_uint_eq(items_sum, 0);
    ck_assert(!atomic_load(&account->shared));
    free(account);
    ml_workers_free(workers);
}
END_TEST

/* Each waits for the other: one alone would stay here for ever. */
static void meet(void *context, uint32_t item, unsigned worker) {
    atomic_uint *here = context;
    (void)item;
    (void)worker;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < 2) {
    }
}

START_TEST(two_work_at_the_same_time) {
    struct ml_workers *workers = ml_workers_new(2);
    atomic_uint here = 0;
    ck_assert_ptr_nonnull(workers);
    ml_workers_run(workers, meet, &here, 2);
    ck_assert_uint_eq(atomic_load(&here), 2);
    ml_workers_free(workers);
}
END_TEST

START_TEST(nobody_is_one_worker) {
    ck_assert_uint_eq(ml_workers_count(NULL), 1);
    ck_assert_uint_ge(ml_workers_default(), 1);
    ck_assert_uint_le(ml_workers_default(), ML_WORKERS_DEFAULT_MAX);
    ml_workers_free(NULL);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("workers");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, every_item_is_done_once_and_seen_behind_it, 1, WORKERS + 1);
    tcase_add_test(tcase, two_work_at_the_same_time);
    tcase_add_test(tcase, nobody_is_one_worker);
    return run_suite("service/workers", tcase);
}
