#include "client/hooks/ask_limit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(so_many_in_a_row_and_then_one_an_interval) {
    struct ml_ask_limit limit = {0};
    uint64_t now_ns = 7;
    for (int i = 0; i < ML_ASK_BURST; i++) {
        ck_assert(ml_ask_may(&limit, now_ns));
    }
    ck_assert(!ml_ask_may(&limit, now_ns));
    ck_assert(!ml_ask_may(&limit, now_ns + ML_ASK_INTERVAL_NS - 1));
    ck_assert(ml_ask_may(&limit, now_ns + ML_ASK_INTERVAL_NS));
    ck_assert(!ml_ask_may(&limit, now_ns + ML_ASK_INTERVAL_NS));
    ck_assert_uint_eq(limit.passed_over, 3);
    /* After a silence there is a burst again, and no more than one. */
    now_ns += (uint64_t)ML_ASK_INTERVAL_NS * 1000;
    for (int i = 0; i < ML_ASK_BURST; i++) {
        ck_assert(ml_ask_may(&limit, now_ns));
    }
    ck_assert(!ml_ask_may(&limit, now_ns));
}
END_TEST

enum { THREADS = 4, CALLS = 50000 };
static struct ml_ask_limit shared;
static _Atomic uint32_t let_through;

static void *ask(void *unused) {
    (void)unused;
    for (int i = 0; i < CALLS; i++) {
        if (ml_ask_may(&shared, 1000)) {
            (void)atomic_fetch_add(&let_through, 1);
        }
    }
    return NULL;
}

START_TEST(threads_together_get_what_one_gets_and_every_call_is_counted) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
    ck_assert_uint_eq(let_through, ML_ASK_BURST);
    ck_assert_uint_eq(shared.passed_over, THREADS * CALLS - ML_ASK_BURST);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("ask_limit");
    tcase_add_test(tcase, so_many_in_a_row_and_then_one_an_interval);
    tcase_add_test(tcase, threads_together_get_what_one_gets_and_every_call_is_counted);
    return run_suite("client/ask_limit", tcase);
}
