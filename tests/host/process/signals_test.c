#include "host/process/signals.h"

#include <stdlib.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(a_terminals_signal_is_the_programs_already) {
    ck_assert_int_eq(ml_signal_decide(SIGINT, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGQUIT, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGTSTP, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGWINCH, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
}
END_TEST

START_TEST(somebodys_signal_goes_on_to_the_program) {
    static const int forwarded[] = {
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGWINCH, SIGVTALRM};
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
        ck_assert_int_eq(ml_signal_decide(forwarded[i], SI_USER, 0, true), ML_SIGNAL_FORWARD);
    }
    ck_assert_int_eq(ml_signal_decide(SIGRTMIN + 3, SI_QUEUE, 0, true), ML_SIGNAL_FORWARD);
}
END_TEST

START_TEST(without_the_program_only_requests_to_end_count) {
    ck_assert_int_eq(ml_signal_decide(SIGINT, SI_KERNEL, 0, false), ML_SIGNAL_END);
    ck_assert_int_eq(ml_signal_decide(SIGTERM, SI_USER, 0, false), ML_SIGNAL_END);
    ck_assert_int_eq(ml_signal_decide(SIGHUP, SI_USER, 0, false), ML_SIGNAL_END);
    ck_assert_int_eq(ml_signal_decide(SIGUSR1, SI_USER, 0, false), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGTSTP, SI_KERNEL, 0, false), ML_SIGNAL_IGNORE);
}
END_TEST

START_TEST(children_and_the_dump_signal_are_the_hosts_own) {
    ck_assert_int_eq(ml_signal_decide(SIGCHLD, CLD_EXITED, 0, true), ML_SIGNAL_CHILDREN);
    ck_assert_int_eq(ml_signal_decide(SIGUSR2, SI_USER, SIGUSR2, true), ML_SIGNAL_DUMP);
    ck_assert_int_eq(ml_signal_decide(SIGUSR2, SI_USER, SIGUSR1, true), ML_SIGNAL_FORWARD);
    ck_assert_int_eq(ml_signal_decide(SIGPIPE, SI_USER, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGCONT, SI_USER, 0, true), ML_SIGNAL_IGNORE);
}
END_TEST

enum { SEEN_MAX = 8 };

struct seen {
    struct ml_signals signals;
    int numbers[SEEN_MAX], codes[SEEN_MAX];
    int count;
    bool closes; /* at the first one */
};

static void on_signal(void *context, int signal, int code) {
    struct seen *seen = context;
    ck_assert_int_lt(seen->count, SEEN_MAX);
    seen->numbers[seen->count] = signal;
    seen->codes[seen->count++] = code;
    if (seen->closes) {
        ml_signals_close(&seen->signals);
    }
}

static struct ev_loop *open_signals(struct seen *seen) {
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_ptr_nonnull(loop);
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_signals_open(&seen->signals, loop, on_signal, seen, &error), ML_OK);
    ck_assert_str_eq(error.text, "");
    return loop;
}

/* Both would end the process if they were not held back for the loop. */
START_TEST(signals_come_on_the_loop_with_who_sent_them) {
    struct seen seen = {0};
    struct ev_loop *loop = open_signals(&seen);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(sigqueue(getpid(), SIGRTMIN + 3, (union sigval){0}), 0);
    ck_assert_int_eq(seen.count, 0);
    ev_run(loop, EVRUN_ONCE);
    ck_assert_int_eq(seen.count, 2);
    ck_assert_int_eq(seen.numbers[0], SIGTERM);
    ck_assert_int_eq(seen.codes[0], SI_USER);
    ck_assert_int_eq(seen.numbers[1], SIGRTMIN + 3);
    ck_assert_int_eq(seen.codes[1], SI_QUEUE);
    ml_signals_close(&seen.signals);
    ev_loop_destroy(loop);
}
END_TEST

START_TEST(who_closes_at_a_signal_gets_no_other) {
    struct seen seen = {.closes = true};
    struct ev_loop *loop = open_signals(&seen);
    ck_assert_int_eq(kill(getpid(), SIGUSR1), 0);
    ck_assert_int_eq(kill(getpid(), SIGUSR2), 0);
    ev_run(loop, EVRUN_ONCE);
    ck_assert_int_eq(seen.count, 1);
    ml_signals_close(&seen.signals); /* a second time: nothing is open */
    sigset_t held_back;
    ck_assert_int_eq(sigpending(&held_back), 0);
    ck_assert(sigismember(&held_back, SIGUSR2)); /* and they stay blocked */
    ev_loop_destroy(loop);
}
END_TEST

/* A signal of a fault that is held back would end the program without a word of its handlers. */
START_TEST(faults_are_left_alone) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    struct seen seen = {0};
    struct ev_loop *loop = open_signals(&seen);
    sigset_t blocked;
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, NULL, &blocked), 0);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        ck_assert(!sigismember(&blocked, faults[i]));
    }
    ck_assert(sigismember(&blocked, SIGCHLD));
    ml_signals_close(&seen.signals);
    ev_loop_destroy(loop);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("signals");
    tcase_add_test(tcase, a_terminals_signal_is_the_programs_already);
    tcase_add_test(tcase, somebodys_signal_goes_on_to_the_program);
    tcase_add_test(tcase, without_the_program_only_requests_to_end_count);
    tcase_add_test(tcase, children_and_the_dump_signal_are_the_hosts_own);
    tcase_add_test(tcase, signals_come_on_the_loop_with_who_sent_them);
    tcase_add_test(tcase, who_closes_at_a_signal_gets_no_other);
    tcase_add_test(tcase, faults_are_left_alone);
    return run_suite("host/signals", tcase);
}
