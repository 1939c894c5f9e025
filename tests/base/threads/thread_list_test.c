/* Passes over the list of this test's own threads. That none is missed while they come and go, is
 * held where they are stopped: tests/tracer/threads_test.c, tests/host/engine/views/holder_test.c.
 */
#include "base/threads/thread_list.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { THREADS = 1000, KNOWN_MAX = 2000 };

struct walker {
    enum ml_thread_taken answer; /* to a new one */
    pid_t known[KNOWN_MAX];
    int count;
};

static pthread_barrier_t are_there;
static pthread_barrier_t may_end;

static void *stay(void *context) {
    (void)pthread_barrier_wait(&are_there);
    (void)pthread_barrier_wait(&may_end);
    return context;
}

static enum ml_thread_taken take(void *context, pid_t id) {
    struct walker *walker = context;
    for (int i = 0; i < walker->count; i++) {
        if (walker->known[i] == id) {
            return ML_THREAD_HAD;
        }
    }
    ck_assert_int_lt(walker->count, KNOWN_MAX);
    if (walker->answer == ML_THREAD_NEW || walker->answer == ML_THREAD_HAD) {
        walker->known[walker->count++] = id;
    }
    return walker->answer;
}

/* More of them than one read of the list holds. */
START_TEST(is_settled_when_a_pass_finds_just_those_that_are_known) {
    static struct walker walker = {.answer = ML_THREAD_NEW};
    pthread_t threads[THREADS];
    ck_assert_int_eq(ml_thread_list_pass(getpid(), take, &walker), ML_THREAD_PASS_UNSETTLED);
    ck_assert_int_eq(walker.count, 1);
    ck_assert_int_eq(ml_thread_list_pass(getpid(), take, &walker), ML_THREAD_PASS_SETTLED);
    (void)pthread_barrier_init(&are_there, NULL, THREADS + 1);
    (void)pthread_barrier_init(&may_end, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, stay, NULL), 0);
    }
    (void)pthread_barrier_wait(&are_there);
    ck_assert_int_eq(ml_thread_list_pass(getpid(), take, &walker), ML_THREAD_PASS_UNSETTLED);
    ck_assert_int_eq(walker.count, THREADS + 1);
    ck_assert_int_eq(ml_thread_list_pass(getpid(), take, &walker), ML_THREAD_PASS_SETTLED);
    (void)pthread_barrier_wait(&may_end);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
}
END_TEST

START_TEST(one_that_has_ended_or_is_forbidden_settles_nothing) {
    static struct walker ended = {.answer = ML_THREAD_ENDED};
    static struct walker forbidden = {.answer = ML_THREAD_FORBIDDEN};
    static struct walker had = {.answer = ML_THREAD_HAD};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ml_thread_list_pass(getpid(), take, &ended), ML_THREAD_PASS_UNSETTLED);
    }
    ck_assert_int_eq(ml_thread_list_pass(getpid(), take, &forbidden), ML_THREAD_PASS_FORBIDDEN);
    ck_assert_int_eq(ml_thread_list_pass(getpid(), take, &had), ML_THREAD_PASS_SETTLED);
}
END_TEST

static void *refuse(void *context) {
    const pid_t id = (pid_t)syscall(SYS_gettid);
    *(bool *)context = ml_thread_not_seized(getpid(), id, EPERM) == ML_THREAD_FORBIDDEN;
    return NULL;
}

START_TEST(says_what_it_means_that_one_was_not_seized) {
    static struct walker walker = {.answer = ML_THREAD_NEW};
    pthread_t thread;
    bool is_forbidden = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, refuse, &is_forbidden), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(is_forbidden);
    ck_assert_int_eq(ml_thread_not_seized(getpid(), getpid(), EPERM), ML_THREAD_FORBIDDEN);
    ck_assert_int_eq(ml_thread_not_seized(getpid(), getpid(), ESRCH), ML_THREAD_ENDED);
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(ml_thread_not_seized(child, child, EPERM), ML_THREAD_HAD); /* a zombie */
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(ml_thread_not_seized(child, child, EPERM), ML_THREAD_ENDED);
    ck_assert_int_eq(ml_thread_list_pass(child, take, &walker), ML_THREAD_PASS_SETTLED);
    ck_assert_int_eq(walker.count, 0);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("thread_list");
    tcase_add_test(cases, is_settled_when_a_pass_finds_just_those_that_are_known);
    tcase_add_test(cases, one_that_has_ended_or_is_forbidden_settles_nothing);
    tcase_add_test(cases, says_what_it_means_that_one_was_not_seized);
    return run_suite("thread_list", cases);
}
