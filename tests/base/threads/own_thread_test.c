#include "base/threads/own_thread.h"

#include <semaphore.h>
#include <signal.h>

#include <check.h>

#include "tests/suite.h"

enum { STACK_BYTES = 256 << 10 };

static sem_t told;

/* What of all signals it would hear. */
static void *hears(void *context) {
    int *count = context;
    sigset_t mask;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number <= SIGSYS; number++) {
        *count += number != SIGKILL && number != SIGSTOP && sigismember(&mask, number) == 0;
    }
    (void)sem_post(&told);
    return context;
}

START_TEST(it_hears_no_signal_and_its_maker_hears_them_still) {
    int count = 0;
    void *end = NULL;
    pthread_t thread;
    sigset_t before;
    sigset_t after;
    (void)sigemptyset(&before);
    (void)sigemptyset(&after);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    ck_assert(ml_own_thread_begin(STACK_BYTES, hears, &count, &thread));
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    ck_assert_int_eq(pthread_join(thread, &end), 0);
    ck_assert_ptr_eq(end, &count);
    ck_assert_int_eq(count, 0);
    for (int number = 1; number <= SIGSYS; number++) {
        ck_assert_int_eq(sigismember(&before, number), sigismember(&after, number));
    }
}
END_TEST

START_TEST(one_that_nobody_joins_runs_too) {
    static int count;
    ck_assert(ml_own_thread_begin(STACK_BYTES, hears, &count, NULL));
    ck_assert_int_eq(sem_wait(&told), 0);
    ck_assert_int_eq(count, 0);
}
END_TEST

START_TEST(without_memory_for_its_stack_there_is_none) {
    pthread_t thread;
    int count = 0;
    ck_assert(!ml_own_thread_begin((size_t)1 << 62, hears, &count, &thread));
}
END_TEST

int main(void) {
    (void)sem_init(&told, 0, 0);
    TCase *tests = tcase_create("own_thread");
    tcase_add_test(tests, it_hears_no_signal_and_its_maker_hears_them_still);
    tcase_add_test(tests, one_that_nobody_joins_runs_too);
    tcase_add_test(tests, without_memory_for_its_stack_there_is_none);
    return run_suite("own_thread", tests);
}
