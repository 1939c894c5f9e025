/* All threads of a process, stopped while they come and go. This test is the parent. */
#include "tracer/process/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"
#include "tracer/process/target.h"

enum {
    ROUNDS = 300,
    TRIES = 20000,
    PAUSE_US = 500,
    STILL_PAUSES = 4,
    TICKING = 4,
    TICK_NS = 20000,
    SOON_PAUSES = 500
};

/* With the child. */
static struct {
    atomic_ulong turns;
    atomic_bool is_vforked, may_end;
} * shared;
static atomic_ulong *turns;
static pid_t child;

static void pause_a_little(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_US * 1000L};
    (void)nanosleep(&pause, NULL);
}

static bool is_running(void) {
    const unsigned long before = atomic_load(turns);
    for (int i = 0; i < TRIES; i++) {
        if (atomic_load(turns) != before) {
            return true;
        }
        pause_a_little();
    }
    return false;
}

static bool stands_still(void) {
    const unsigned long before = atomic_load(turns);
    for (int i = 0; i < STILL_PAUSES; i++) {
        pause_a_little();
    }
    return atomic_load(turns) == before;
}

static void setup(void) {
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    turns = &shared->turns;
    child = -1;
}

static void teardown(void) {
    if (child > 0) {
        atomic_store(&shared->may_end, true);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    (void)munmap(shared, sizeof(*shared));
}

static void start(void (*body)(void)) {
    child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        body();
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    ck_assert(is_running());
}

static void *be_born(void *context) {
    pthread_t next;
    pthread_attr_t attributes;
    (void)context;
    (void)atomic_fetch_add(turns, 1);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pthread_create(&next, &attributes, be_born, NULL) != 0) {
    }
    return NULL;
}

static void bear_threads(void) {
    (void)be_born(NULL);
    for (;;) {
        (void)pause();
    }
}

/* Each thread makes the next one and ends: a list of them is old before it is read. */
START_TEST(threads_that_are_born_and_end_meanwhile_are_stopped_too) {
    start(bear_threads);
    for (int i = 0; i < ROUNDS; i++) {
        struct ml_threads threads;
        struct ml_error_message error = {{0}};
        ml_threads_init(&threads, child);
        ck_assert_msg(ml_threads_stop_all(&threads, &error), "%s", error.text);
        ck_assert_msg(stands_still(), "round %d", i);
        ml_threads_let_go(&threads);
        ck_assert(is_running());
    }
}
END_TEST

static void nothing(int number) {
    (void)number;
    (void)atomic_fetch_add(turns, 1);
}

static void *get_ticks(void *context) {
    const struct itimerspec interval = {
        .it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    timer_t timer;
    (void)context;
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &interval, NULL) != 0) {
        _exit(1);
    }
    for (;;) {
    }
    return NULL;
}

static void be_full_of_ticks(void) {
    pthread_t other;
    (void)signal(SIGUSR1, nothing);
    for (int i = 1; i < TICKING; i++) {
        (void)pthread_create(&other, NULL, get_ticks, NULL);
    }
    (void)get_ticks(NULL);
}

/* While it arms a timer again, the kernel has taken its signal and not yet told of it. A stop that
 * is asked for at that moment is forgotten when it tells. It is to be asked for again. */
START_TEST(threads_that_get_a_timers_signals_all_the_time_stop) {
    start(be_full_of_ticks);
    for (int i = 0; i < ROUNDS; i++) {
        struct ml_threads threads;
        struct ml_error_message error = {{0}};
        ml_threads_init(&threads, child);
        ck_assert_msg(ml_threads_stop_all(&threads, &error), "%s", error.text);
        ck_assert_msg(stands_still(), "round %d", i);
        ml_threads_let_go(&threads);
        ck_assert_msg(ml_threads_stop_one(&threads, child, &error), "%s", error.text);
        ml_threads_let_go(&threads);
        ck_assert(is_running());
    }
}
END_TEST

/* The calling thread sleeps until the child has ended: nothing stops it meanwhile. */
static void *wait_for_vforked(void *context) {
    (void)context;
    atomic_store(&shared->is_vforked, true);
    if (vfork() == 0) {
        while (!atomic_load(&shared->may_end)) {
        }
        _exit(0);
    }
    for (;;) {
        (void)pause();
    }
    return NULL;
}

static void count_beside_vfork(void) {
    pthread_t other;
    (void)pthread_create(&other, NULL, wait_for_vforked, NULL);
    while (!atomic_load(&shared->is_vforked)) {
    }
    for (;;) {
        (void)atomic_fetch_add(turns, 1);
    }
}

static void wait_for_deep_sleep(void) {
    pid_t ids[4];
    bool is_deep = false;
    for (int i = 0; i < TRIES && !is_deep; i++) {
        const size_t count = ml_threads_list(child, ids, 4);
        for (size_t k = 0; k < count; k++) {
            is_deep = is_deep || ml_target_sleeps_deep(child, ids[k]);
        }
        pause_a_little();
    }
    ck_assert(is_deep);
}

static void *end_soon(void *context) {
    (void)context;
    for (int i = 0; i < SOON_PAUSES; i++) {
        pause_a_little();
    }
    atomic_store(&shared->may_end, true);
    return NULL;
}

START_TEST(who_sleeps_deep_is_told_and_waited_for_while_others_run) {
    struct ml_threads threads;
    struct ml_error_message error = {{0}};
    pthread_t other;
    start(count_beside_vfork);
    wait_for_deep_sleep();
    ml_threads_init(&threads, child);
    ck_assert(!ml_threads_stop_all(&threads, &error));
    ck_assert_msg(strstr(error.text, "sleeps where nothing stops it") != NULL, "%s", error.text);
    ck_assert(is_running());
    ck_assert_int_eq(pthread_create(&other, NULL, end_soon, NULL), 0);
    ck_assert_msg(ml_threads_stop_all(&threads, &error), "%s", error.text);
    ck_assert(stands_still());
    ck_assert_uint_eq(threads.count, 2);
    ml_threads_let_go(&threads);
    ck_assert(is_running());
    (void)pthread_join(other, NULL);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("threads");
    tcase_set_timeout(cases, 180);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, threads_that_are_born_and_end_meanwhile_are_stopped_too);
    tcase_add_test(cases, who_sleeps_deep_is_told_and_waited_for_while_others_run);
    tcase_add_test(cases, threads_that_get_a_timers_signals_all_the_time_stop);
    return run_suite("threads", cases);
}
