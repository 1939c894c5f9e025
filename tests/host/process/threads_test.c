#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#include "host/process/threads.h"

static void *wait_there(void *context) {
    pthread_barrier_t *barrier = context;
    (void)pthread_barrier_wait(barrier);
    (void)pthread_barrier_wait(barrier);
    return NULL;
}

START_TEST(threads_of_a_process_are_told_by_number_and_name) {
    struct ml_process_threads threads;
    pthread_barrier_t barrier;
    pthread_t thread;
    bool seen = false;
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_there, &barrier), 0);
    ck_assert_int_eq(pthread_setname_np(thread, "fifteen-letters"), 0);
    (void)pthread_barrier_wait(&barrier);
    ml_process_threads_init(&threads, getpid());
    (void)pthread_barrier_wait(&barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_ge(threads.count, 2);
    ck_assert_uint_eq(threads.items[0].tid, (uint32_t)getpid());
    for (uint32_t i = 0; i < threads.count; i++) {
        seen = seen || strcmp(threads.items[i].name, "fifteen-letters") == 0;
    }
    ck_assert(seen);
    ml_process_threads_fini(&threads);
}
END_TEST

START_TEST(of_a_process_that_is_gone_there_are_none) {
    struct ml_process_threads threads;
    ml_process_threads_init(&threads, 0x3fffffff);
    ck_assert_uint_eq(threads.count, 0);
    ml_process_threads_fini(&threads);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, threads_of_a_process_are_told_by_number_and_name);
    tcase_add_test(tests, of_a_process_that_is_gone_there_are_none);
    return run_suite("host/process_threads", tests);
}
