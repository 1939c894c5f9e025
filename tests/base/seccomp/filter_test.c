#include "base/seccomp/filter.h"

#include <check.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suite.h"

#define ANSWER(filter_, call_)                                                                     \
    ml_filter_answer((filter_), sizeof(filter_) / sizeof((filter_)[0]), (call_))

static const struct seccomp_data a_write = {
    .nr = SYS_write, .arch = AUDIT_ARCH_X86_64, .args = {7, UINT64_C(0x123456789), 4096}};

START_TEST(lets_through_what_is_listed_and_nothing_else) {
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_close, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 13),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct seccomp_data call = a_write;
    ck_assert_uint_eq(ANSWER(filter, &call), SECCOMP_RET_ALLOW);
    call.nr = SYS_close;
    ck_assert_uint_eq(ANSWER(filter, &call), SECCOMP_RET_ERRNO | 13);
    call.arch = AUDIT_ARCH_I386;
    ck_assert_uint_eq(ANSWER(filter, &call), SECCOMP_RET_KILL_PROCESS);
}
END_TEST

/* Each kind of instruction: ((args[0] << 3 | 5) * 2 - 1) ^ 0xff, by memory and X, jumping over all
 * that would spoil it. */
START_TEST(computes_as_the_kernel_does) {
    const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16),
        BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 3),
        BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 5),
        BPF_STMT(BPF_ST, 3),
        BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_MEM, 3),
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
        BPF_STMT(BPF_JMP | BPF_JA, 1),
        BPF_STMT(BPF_RET | BPF_K, 1),
        BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 1),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_STX, 15),
        BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, sizeof(struct seccomp_data), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_IMM, 0xff),
        BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 15),
        BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 3),
        BPF_STMT(BPF_RET | BPF_A, 0)};
    ck_assert_uint_eq(ANSWER(filter, &a_write), (((7U << 3 | 5U) * 2 - 1) ^ 0xff));
}
END_TEST

START_TEST(reads_both_halves_of_an_argument) {
    const struct sock_filter high[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 28), BPF_STMT(BPF_RET | BPF_A, 0)};
    const struct sock_filter low[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 24), BPF_STMT(BPF_RET | BPF_A, 0)};
    ck_assert_uint_eq(ANSWER(high, &a_write), 1);
    ck_assert_uint_eq(ANSWER(low, &a_write), 0x23456789);
}
END_TEST

/* What the kernel would refuse to load never runs wild here either. */
START_TEST(what_is_no_filter_kills) {
    const struct sock_filter endless[] = {BPF_STMT(BPF_LD | BPF_W | BPF_IMM, 1)};
    const struct sock_filter far[] = {BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff)};
    const struct sock_filter beyond[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0xfffffff0), BPF_STMT(BPF_RET | BPF_A, 0)};
    const struct sock_filter by_zero[] = {
        BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
        BPF_STMT(BPF_ST, 0xffffffff),
        BPF_STMT(BPF_RET | BPF_A, 0)};
    ck_assert_uint_eq(ANSWER(endless, &a_write), SECCOMP_RET_KILL_PROCESS);
    ck_assert_uint_eq(ANSWER(far, &a_write), SECCOMP_RET_KILL_PROCESS);
    ck_assert_uint_eq(ANSWER(beyond, &a_write), 0);
    ck_assert_uint_eq(ANSWER(by_zero, &a_write), 0);
    ck_assert_uint_eq(ml_filter_answer(NULL, 0, &a_write), SECCOMP_RET_KILL_PROCESS);
}
END_TEST

/* The same filter in the kernel: for each call number what it did is what we said. */
START_TEST(the_kernel_says_the_same) {
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 8, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 77),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    static const int harmless[] = {
        SYS_getpid,
        SYS_gettid,
        SYS_getuid,
        SYS_geteuid,
        SYS_getgid,
        SYS_getegid,
        SYS_getppid,
        SYS_sched_yield,
        SYS_getpgrp};
    const struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    const pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
            _exit(2);
        }
        for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
            const struct seccomp_data call = {.nr = harmless[i], .arch = AUDIT_ARCH_X86_64};
            const bool refused = syscall(harmless[i]) == -1;
            if (refused != (ANSWER(filter, &call) != SECCOMP_RET_ALLOW)) {
                syscall(SYS_exit_group, 3);
                syscall(SYS_kill, 0, 9);
            }
        }
        for (;;) {
            syscall(SYS_exit_group, 0);
            syscall(SYS_exit, 0);
        }
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("filter");
    tcase_add_test(tcase, lets_through_what_is_listed_and_nothing_else);
    tcase_add_test(tcase, computes_as_the_kernel_does);
    tcase_add_test(tcase, reads_both_halves_of_an_argument);
    tcase_add_test(tcase, what_is_no_filter_kills);
    tcase_add_test(tcase, the_kernel_says_the_same);
    return run_suite("client/filter", tcase);
}
