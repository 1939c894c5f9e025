#include "host/attach/attachable.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { PID = 4711, UID = 1000 };

#define STATUS                                                                                     \
    "Name:\tprog\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nNgid:\t0\nPid:\t4711\n"         \
    "PPid:\t1\nTracerPid:\t12\nUid:\t1000\t1001\t1002\t1003\nGid:\t1000\t1000\t1000\t1000\n"       \
    "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"
#define STAT(state, flags) "4711 (a) b) " state " 1 4711 4711 0 -1 " flags " 1456 0 1 0 4 2 0 0"

static struct ml_attachable_facts ordinary(void) {
    return (struct ml_attachable_facts){
        .state = 'S',
        .process = PID,
        .uids = {UID, UID, UID},
        .is_dumpable = true,
        .own_uid = UID,
    };
}

START_TEST(reads_what_the_kernel_says_of_a_process) {
    struct ml_attachable_facts facts = {.own_uid = UID};
    ml_attachable_parse(&facts, STATUS, STAT("S", "4194560"));
    ck_assert_int_eq(facts.state, 'S');
    ck_assert(!facts.is_kernel);
    ck_assert_int_eq(facts.process, PID);
    ck_assert_int_eq(facts.tracer, 12);
    ck_assert_uint_eq(facts.uids[0], 1000);
    ck_assert_uint_eq(facts.uids[1], 1001);
    ck_assert_uint_eq(facts.uids[2], 1002);
    ck_assert_uint_eq(facts.seccomp, 2);
    ml_attachable_parse(&facts, "", STAT("I", "69238880"));
    ck_assert(facts.is_kernel);
    ml_attachable_parse(&facts, "", "");
    ck_assert_int_eq(facts.state, 0);
}
END_TEST

START_TEST(reads_its_own_capabilities) {
    static const struct {
        const char *status;
        bool may_trace_all, may_read_filters;
    } cases[] = {
        {"Name:\tmemlog\nCapEff:\t000001ffffffffff\n", true, true},
        {"CapPrm:\t000001ffffffffff\nCapEff:\t0000000000080000\n", true, false},
        {"CapEff:\t0000000000200000\n", false, true},
        {"CapEff:\t0000000000000000\n", false, false},
        {"", false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_attachable_facts facts = {.state = 'S'};
        ml_attachable_parse_own(&facts, cases[i].status);
        ck_assert(facts.may_trace_all == cases[i].may_trace_all);
        ck_assert(facts.may_read_filters == cases[i].may_read_filters);
    }
}
END_TEST

static void assert_judged(const struct ml_attachable_facts *facts, enum ml_attachable wanted) {
    char text[ML_ATTACHABLE_TEXT_BYTES];
    ck_assert_int_eq(ml_attachable_judge(facts, PID), wanted);
    ml_attachable_text(wanted, facts, text);
    ck_assert((text[0] == '\0') == (wanted == ML_ATTACHABLE));
}

START_TEST(each_reason_is_found_and_has_words) {
    struct ml_attachable_facts facts = ordinary();
    assert_judged(&facts, ML_ATTACHABLE);
    facts.state = 0;
    assert_judged(&facts, ML_ATTACHABLE_GONE);
    facts.state = 'Z';
    assert_judged(&facts, ML_ATTACHABLE_HEADLESS);
    facts.has_ended = true;
    assert_judged(&facts, ML_ATTACHABLE_ZOMBIE);
    facts.is_kernel = true;
    assert_judged(&facts, ML_ATTACHABLE_KERNEL);
    facts = ordinary();
    facts.process = PID - 1;
    assert_judged(&facts, ML_ATTACHABLE_THREAD);
    for (int i = 0; i < 3; i++) {
        facts = ordinary();
        facts.uids[i] = 0;
        assert_judged(&facts, ML_ATTACHABLE_OTHER_USER);
    }
    facts = ordinary();
    facts.is_dumpable = false;
    assert_judged(&facts, ML_ATTACHABLE_NOT_DUMPABLE);
    facts.tracer = 1;
    assert_judged(&facts, ML_ATTACHABLE_TRACED);
    facts = ordinary();
    facts.seccomp = 2;
    assert_judged(&facts, ML_ATTACHABLE_SECCOMP);
}
END_TEST

START_TEST(who_may_trace_all_is_held_up_by_fewer_reasons) {
    struct ml_attachable_facts facts = ordinary();
    facts.may_trace_all = true;
    facts.own_uid = 0;
    facts.is_dumpable = false;
    facts.yama = 2;
    assert_judged(&facts, ML_ATTACHABLE);
    facts.seccomp = 2;
    assert_judged(&facts, ML_ATTACHABLE_SECCOMP);
    facts.may_read_filters = true;
    assert_judged(&facts, ML_ATTACHABLE);
    facts.tracer = 1;
    assert_judged(&facts, ML_ATTACHABLE_TRACED);
}
END_TEST

START_TEST(each_of_yamas_rules_says_what_to_do) {
    static const struct {
        unsigned yama;
        bool may_trace_all;
        const char *words; /* NULL: it permits it */
    } cases[] = {
        {0, false, NULL},
        {1, false, "sysctl kernel.yama.ptrace_scope=0"},
        {1, true, NULL},
        {2, false, "only root may trace"},
        {2, true, NULL},
        {3, false, "until the next boot"},
        {3, true, "until the next boot"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_attachable_facts facts = ordinary();
        char text[ML_ATTACHABLE_TEXT_BYTES];
        facts.yama = cases[i].yama;
        facts.may_trace_all = cases[i].may_trace_all;
        const enum ml_attachable why = ml_attachable_judge(&facts, PID);
        ck_assert_int_eq(why, cases[i].words != NULL ? ML_ATTACHABLE_YAMA : ML_ATTACHABLE);
        ml_attachable_text(why, &facts, text);
        ck_assert(cases[i].words == NULL || strstr(text, cases[i].words) != NULL);
    }
}
END_TEST

static pid_t start_child(void (*begin)(void)) {
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)close(ready[0]);
        begin();
        (void)!write(ready[1], "r", 1);
        (void)pause();
        _exit(0);
    }
    (void)close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return pid;
}

static void do_nothing(void) {
}

static void be_secret(void) {
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static void end_child(pid_t pid) {
    (void)kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static _Noreturn void *outlive(void *context) {
    for (int i = 0; i < 10000 && ml_attachable_read(getpid()).state != 'Z'; i++) {
        (void)usleep(500);
    }
    (void)!write(*(const int *)context, ".", 1);
    for (;;) {
        (void)pause();
    }
}

/* Its first thread ends, and another one runs on. */
START_TEST(a_process_without_its_first_thread_is_no_ended_one) {
    char text[ML_ATTACHABLE_TEXT_BYTES];
    char byte = 0;
    int ready[2];
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        pthread_t other;
        if (pthread_create(&other, NULL, outlive, &ready[1]) == 0) {
            pthread_exit(NULL);
        }
        _exit(1);
    }
    (void)close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    ml_attachable_why_not(pid, text);
    ck_assert_ptr_nonnull(strstr(text, "its first thread has ended"));
    end_child(pid);
}
END_TEST

START_TEST(a_real_process_is_seen_as_it_is) {
    char text[ML_ATTACHABLE_TEXT_BYTES];
    const pid_t plain = start_child(do_nothing);
    struct ml_attachable_facts facts = ml_attachable_read(plain);
    ck_assert_int_eq(facts.process, plain);
    ck_assert(facts.is_dumpable && !facts.is_kernel);
    ck_assert_uint_eq(facts.uids[1], geteuid());
    ck_assert_int_eq(ptrace(PTRACE_SEIZE, plain, 0, 0), 0);
    ml_attachable_why_not(plain, text);
    ck_assert_ptr_nonnull(strstr(text, "attachable_test ("));
    end_child(plain);
    ml_attachable_why_not(plain, text);
    ck_assert_str_eq(text, "there is no such process");
    const pid_t secret = start_child(be_secret);
    facts = ml_attachable_read(secret);
    ck_assert(facts.is_dumpable == (geteuid() == 0)); /* its files are root's, who is its user */
    end_child(secret);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("attachable");
    tcase_add_test(tcase, reads_what_the_kernel_says_of_a_process);
    tcase_add_test(tcase, reads_its_own_capabilities);
    tcase_add_test(tcase, each_reason_is_found_and_has_words);
    tcase_add_test(tcase, who_may_trace_all_is_held_up_by_fewer_reasons);
    tcase_add_test(tcase, each_of_yamas_rules_says_what_to_do);
    tcase_add_test(tcase, a_real_process_is_seen_as_it_is);
    tcase_add_test(tcase, a_process_without_its_first_thread_is_no_ended_one);
    return run_suite("host/attachable", tcase);
}
