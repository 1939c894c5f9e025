#include "tracer/process/target.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { TRIES = 2000 };

static void pause_ms(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)nanosleep(&pause, NULL);
}

/* Field 22 of /proc/PID/stat, read another way. */
static uint64_t ticks_of(pid_t pid) {
    char path[64];
    char text[4096] = "";
    unsigned long long ticks = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    const size_t got = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[got] = '\0';
    const int read = sscanf(
        strrchr(text, ')'),
        ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
        &ticks
    );
    ck_assert_int_eq(read, 1);
    return ticks;
}

/* A child that runs `what` and then waits. */
static pid_t child_of(void (*what)(void)) {
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        what();
        for (;;) {
            (void)pause();
        }
    }
    ck_assert_int_gt(child, 0);
    return child;
}

static void end_child(pid_t child) {
    (void)kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

static void nothing(void) {
}

static void spin(void) {
    for (volatile uint64_t i = 0;; i = i + 1) {
    }
}

static void name_like_a_line(void) {
    (void)prctl(PR_SET_NAME, ") S 1 (2) 3 4");
}

static void filter(void) {
    struct sock_filter line = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
    const struct sock_fprog program = {.len = 1, .filter = &line};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

START_TEST(a_process_is_known_by_its_pid_and_when_it_began) {
    const uint64_t ticks = ticks_of(getpid());
    ck_assert(ml_target_is(getpid(), ticks));
    ck_assert(!ml_target_is(getpid(), ticks + 1));
    ck_assert(!ml_target_is(getpid(), 0));
    const pid_t child = child_of(nothing);
    const uint64_t began = ticks_of(child);
    ck_assert(ml_target_is(child, began));
    end_child(child);
    ck_assert(!ml_target_is(child, began));
}
END_TEST

START_TEST(a_name_with_brackets_and_numbers_is_no_field) {
    const pid_t child = child_of(name_like_a_line);
    bool is_named = false;
    for (int i = 0; i < TRIES && !is_named; i++) {
        char path[64];
        char name[64] = "";
        (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)child);
        FILE *file = fopen(path, "r");
        is_named = fgets(name, sizeof(name), file) != NULL && strchr(name, ')') != NULL;
        (void)fclose(file);
        pause_ms();
    }
    ck_assert(is_named);
    ck_assert(ml_target_is(child, ticks_of(child)));
    end_child(child);
}
END_TEST

START_TEST(the_auxiliary_vector_is_the_kernels) {
    struct ml_attach_auxv list[ML_ATTACH_AUX_MAX];
    const uint32_t count = ml_target_auxv(getpid(), list);
    ck_assert_uint_gt(count, 10);
    bool has_page = false;
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_ne(list[i].kind, AT_NULL);
        /* libc makes another number of this one. */
        ck_assert(list[i].kind == AT_HWCAP || list[i].value == getauxval(list[i].kind));
        has_page = has_page || list[i].kind == AT_PAGESZ;
    }
    ck_assert(has_page);
}
END_TEST

START_TEST(the_stack_begins_between_this_frame_and_the_environments_words) {
    const uint64_t start = ml_target_stack_start(getpid());
    ck_assert_uint_gt(start, (uint64_t)(uintptr_t)__builtin_frame_address(0));
    ck_assert_uint_lt(start, getauxval(AT_RANDOM));
}
END_TEST

START_TEST(a_threads_own_number_is_that_of_its_namespace) {
    ck_assert_uint_eq(ml_target_own_id(getpid(), (pid_t)syscall(SYS_gettid)), (uint32_t)getpid());
    ck_assert_uint_eq(ml_target_own_id(getpid(), 1 << 22), 0);
}
END_TEST

START_TEST(a_seccomp_filter_is_seen) {
    const pid_t child = child_of(filter);
    ck_assert_int_eq(ml_target_seccomp(getpid(), getpid()), 0);
    bool is_filtered = false;
    for (int i = 0; i < TRIES && !is_filtered; i++) {
        is_filtered = ml_target_seccomp(child, child) == SECCOMP_MODE_FILTER;
        pause_ms();
    }
    ck_assert(is_filtered);
    end_child(child);
}
END_TEST

START_TEST(who_waits_sleeps_and_who_computes_does_not) {
    const pid_t waits = child_of(nothing);
    bool sleeps = false;
    for (int i = 0; i < TRIES && !sleeps; i++) {
        sleeps = ml_target_sleeps(waits, waits);
        pause_ms();
    }
    ck_assert(sleeps);
    end_child(waits);
    ck_assert(!ml_target_sleeps(waits, waits));
    const pid_t computes = child_of(spin);
    pause_ms();
    ck_assert(!ml_target_sleeps(computes, computes));
    end_child(computes);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("target");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_process_is_known_by_its_pid_and_when_it_began);
    tcase_add_test(tests, a_name_with_brackets_and_numbers_is_no_field);
    tcase_add_test(tests, the_auxiliary_vector_is_the_kernels);
    tcase_add_test(tests, the_stack_begins_between_this_frame_and_the_environments_words);
    tcase_add_test(tests, a_threads_own_number_is_that_of_its_namespace);
    tcase_add_test(tests, a_seccomp_filter_is_seen);
    tcase_add_test(tests, who_waits_sleeps_and_who_computes_does_not);
    return run_suite("target", tests);
}
