/* Processes that are held, and what they and their parent notice of it. This test is the parent. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#include "host/engine/views/holder.h"
#include "host/memory/status.h"

enum { THREADS = 8, SIGNALS = 20, TRIES = 20000, PAUSE_US = 500 };

/* Shared with the child. */
struct shared {
    atomic_ulong turns;   /* of its loops */
    atomic_ulong signals; /* that its handler has seen */
    atomic_ulong sum;     /* of their values */
    atomic_int is_ready;
    atomic_int is_over;
};

static struct shared *shared;
static struct ml_holder holder;
static char why[ML_HOLD_WHY_BYTES];
static pid_t child;
static atomic_ulong notices; /* SIGCHLD, to the parent */

static void on_notice(int signal) {
    (void)signal;
    (void)atomic_fetch_add(&notices, 1);
}

static void setup(void) {
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    ck_assert_int_gt(ml_holder_open(&holder, NULL), 0);
    const struct sigaction action = {.sa_handler = on_notice, .sa_flags = SA_RESTART};
    ck_assert_int_eq(sigaction(SIGCHLD, &action, NULL), 0);
    child = -1;
}

static void teardown(void) {
    ml_holder_close(&holder);
    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    (void)munmap(shared, sizeof(*shared));
}

static void pause_a_little(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_US * 1000L};
    (void)nanosleep(&pause, NULL);
}

static _Noreturn void *turn(void *context) {
    (void)context;
    for (;;) {
        (void)atomic_fetch_add(&shared->turns, 1);
    }
}

static void on_value(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    (void)atomic_fetch_add(&shared->signals, 1);
    (void)atomic_fetch_add(&shared->sum, (unsigned long)info->si_value.sival_int);
}

static void start(void (*body)(void)) {
    child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        const struct sigaction action = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO};
        (void)sigaction(SIGRTMIN, &action, NULL);
        body();
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    for (int i = 0; i < TRIES && atomic_load(&shared->is_ready) == 0; i++) {
        pause_a_little();
    }
    ck_assert_int_eq(atomic_load(&shared->is_ready), 1);
    (void)atomic_exchange(&notices, 0);
}

static void be_busy(void) {
    pthread_t thread;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_create(&thread, NULL, turn, NULL);
    }
    atomic_store(&shared->is_ready, 1);
    turn(NULL);
}

static bool is_running(void) {
    const unsigned long before = atomic_load(&shared->turns);
    for (int i = 0; i < TRIES; i++) {
        if (atomic_load(&shared->turns) != before) {
            return true;
        }
        pause_a_little();
    }
    return false;
}

static bool stands_still(void) {
    const unsigned long before = atomic_load(&shared->turns);
    for (int i = 0; i < 20; i++) {
        pause_a_little();
    }
    return atomic_load(&shared->turns) == before;
}

static void hold_child(void) {
    ck_assert_msg(ml_holder_hold(&holder, child, why), "%s", why);
    ck_assert_str_eq(why, "");
}

static bool is_let_go(void) {
    for (int i = 0; i < TRIES; i++) {
        if (ml_memory_status_read(child).tracer_pid == 0) {
            return true;
        }
        pause_a_little();
    }
    return false;
}

/* Nothing has happened to the child that its parent may wait for. */
static void expect_no_news(void) {
    siginfo_t info = {.si_pid = 0};
    ck_assert_int_eq(
        waitid(P_PID, (id_t)child, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT), 0
    );
    ck_assert_int_eq(info.si_pid, 0);
    ck_assert_uint_eq(atomic_load(&notices), 0);
}

static void wait_for_news(int options, int code) {
    siginfo_t info = {.si_pid = 0};
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, options), 0);
    ck_assert_int_eq(info.si_code, code);
}

START_TEST(no_thread_runs_while_a_process_is_held_and_all_do_afterwards) {
    start(be_busy);
    for (int i = 0; i < 10; i++) {
        hold_child();
        ck_assert(stands_still());
        ck_assert(ml_holder_holds(&holder));
        ml_holder_release(&holder);
        ck_assert(is_let_go());
        ck_assert(is_running());
    }
    expect_no_news();
}
END_TEST

static void *be_born(void *context) {
    pthread_t next;
    pthread_attr_t attributes;
    (void)context;
    (void)atomic_fetch_add(&shared->turns, 1);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (pthread_create(&next, &attributes, be_born, NULL) != 0) {
    }
    return NULL;
}

static void bear_threads(void) {
    atomic_store(&shared->is_ready, 1);
    (void)be_born(NULL);
    for (;;) {
        (void)pause();
    }
}

START_TEST(threads_that_are_born_and_end_meanwhile_are_held_too) {
    start(bear_threads);
    for (int i = 0; i < 20; i++) {
        hold_child();
        ck_assert(stands_still());
        ml_holder_release(&holder);
        ck_assert(is_let_go());
        ck_assert(is_running());
    }
    expect_no_news();
}
END_TEST

START_TEST(each_signal_that_comes_meanwhile_is_delivered_once) {
    unsigned long sum = 0;
    start(be_busy);
    for (int i = 1; i <= SIGNALS; i++) {
        const union sigval before = {.sival_int = i};
        const union sigval meanwhile = {.sival_int = i * 1000};
        ck_assert_int_eq(sigqueue(child, SIGRTMIN, before), 0);
        hold_child();
        ck_assert_int_eq(sigqueue(child, SIGRTMIN, meanwhile), 0);
        ml_holder_release(&holder);
        ck_assert(is_let_go());
        sum += (unsigned long)i * 1001;
    }
    for (int i = 0; i < TRIES && atomic_load(&shared->signals) < 2 * SIGNALS; i++) {
        pause_a_little();
    }
    ck_assert_uint_eq(atomic_load(&shared->signals), 2 * SIGNALS);
    ck_assert_uint_eq(atomic_load(&shared->sum), sum);
    expect_no_news();
}
END_TEST

START_TEST(a_process_that_is_stopped_stays_so_and_nobody_is_told_again) {
    start(be_busy);
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    wait_for_news(WSTOPPED, CLD_STOPPED);
    (void)atomic_exchange(&notices, 0);
    hold_child();
    ml_holder_release(&holder);
    ck_assert(is_let_go());
    ck_assert(stands_still());
    expect_no_news();
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    wait_for_news(WCONTINUED, CLD_CONTINUED);
    ck_assert(is_running());
}
END_TEST

START_TEST(a_stop_that_comes_meanwhile_stops_it_afterwards) {
    start(be_busy);
    hold_child();
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    ml_holder_release(&holder);
    ck_assert(is_let_go());
    wait_for_news(WSTOPPED, CLD_STOPPED);
    ck_assert(stands_still());
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    wait_for_news(WCONTINUED, CLD_CONTINUED);
    ck_assert(is_running());
}
END_TEST

START_TEST(a_stopped_process_that_is_continued_meanwhile_runs_afterwards) {
    start(be_busy);
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    wait_for_news(WSTOPPED, CLD_STOPPED);
    hold_child();
    ck_assert_int_eq(kill(child, SIGCONT), 0);
    ml_holder_release(&holder);
    ck_assert(is_let_go());
    ck_assert(is_running());
}
END_TEST

START_TEST(a_process_that_is_killed_meanwhile_ends_at_once_for_its_parent) {
    start(be_busy);
    hold_child();
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ml_holder_release(&holder);
    wait_for_news(WEXITED, CLD_KILLED);
    child = -1;
}
END_TEST

START_TEST(who_is_traced_already_is_left_alone_and_the_tracer_named) {
    int ends[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ends), 0);
    start(be_busy);
    const pid_t tracer = fork();
    if (tracer == 0) {
        (void)prctl(PR_SET_NAME, "a tracer");
        (void)!write(ends[1], ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0 ? "y" : "n", 1);
        (void)pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'y');
    ck_assert(!ml_holder_hold(&holder, child, why));
    ck_assert_ptr_nonnull(strstr(why, "a tracer ("));
    ck_assert_int_eq(ml_memory_status_read(child).tracer_pid, tracer);
    ck_assert(is_running());
    ck_assert_int_eq(kill(tracer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

START_TEST(whoever_holds_it_is_killed_and_it_runs_on) {
    start(be_busy);
    hold_child();
    const pid_t tracer = ml_memory_status_read(child).tracer_pid;
    ck_assert_int_gt(tracer, 0);
    ck_assert_int_eq(kill(tracer, SIGKILL), 0);
    ck_assert(is_let_go());
    ck_assert(is_running());
    hold_child();             /* the next one is held as ever */
    ml_holder_close(&holder); /* the host is gone */
    ck_assert(is_let_go());
    ck_assert(is_running());
    expect_no_news();
}
END_TEST

START_TEST(nobody_is_held_for_longer_than_the_limit) {
    start(be_busy);
    hold_child();
    ck_assert(is_let_go()); /* nobody has said so */
    ck_assert(is_running());
    for (int i = 0; i < TRIES && ml_holder_holds(&holder); i++) {
        pause_a_little();
    }
    ml_holder_release(&holder); /* too late */
    hold_child();
    ck_assert(stands_still());
    ck_assert(ml_holder_holds(&holder));
    ml_holder_release(&holder);
    ck_assert(is_let_go());
}
END_TEST

static void wait_in_vfork(void) {
    atomic_store(&shared->is_ready, 1);
    const pid_t inner =
        vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): what is tested */
    if (inner == 0) {
        while (atomic_load(&shared->is_over) == 0) {
            (void)atomic_fetch_add(&shared->turns, 1);
        }
        _exit(0);
    }
    turn(NULL);
}

START_TEST(who_waits_for_a_vfork_is_given_up_in_time_and_runs_on) {
    start(wait_in_vfork);
    ck_assert(is_running());
    ck_assert(!ml_holder_hold(&holder, child, why));
    ck_assert_ptr_nonnull(strstr(why, "did not stop within"));
    ck_assert(is_let_go());
    atomic_store(&shared->is_over, 1);
    ck_assert(is_running());
}
END_TEST

START_TEST(who_is_gone_is_not_held) {
    ck_assert(!ml_holder_hold(&holder, 0x3fffffff, why));
    ck_assert_str_eq(why, "it has ended");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, no_thread_runs_while_a_process_is_held_and_all_do_afterwards);
    tcase_add_test(tests, threads_that_are_born_and_end_meanwhile_are_held_too);
    tcase_add_test(tests, each_signal_that_comes_meanwhile_is_delivered_once);
    tcase_add_test(tests, a_process_that_is_stopped_stays_so_and_nobody_is_told_again);
    tcase_add_test(tests, a_stop_that_comes_meanwhile_stops_it_afterwards);
    tcase_add_test(tests, a_stopped_process_that_is_continued_meanwhile_runs_afterwards);
    tcase_add_test(tests, a_process_that_is_killed_meanwhile_ends_at_once_for_its_parent);
    tcase_add_test(tests, who_is_traced_already_is_left_alone_and_the_tracer_named);
    tcase_add_test(tests, whoever_holds_it_is_killed_and_it_runs_on);
    tcase_add_test(tests, nobody_is_held_for_longer_than_the_limit);
    tcase_add_test(tests, who_waits_for_a_vfork_is_given_up_in_time_and_runs_on);
    tcase_add_test(tests, who_is_gone_is_not_held);
    return run_suite("host/view_holder", tests);
}
