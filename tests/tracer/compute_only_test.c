/* A process that can only compute: on a bare kernel, behind a filter, and where it cannot be had.
 */
#include "tracer/compute_only.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { EXIT_OPEN = 9, WORD = 'w' };

/* What was there before: nothing, or a filter as of a container; one that refuses further ones. */
enum before { BARE, FILTERED, WITHOUT_SECCOMP };

static void put_filter(enum before before) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, before == WITHOUT_SECCOMP ? 0 : 1, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = sizeof(lines) / sizeof(lines[0]), .filter = lines};
    if (before != BARE && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)) {
        _exit(EXIT_OPEN);
    }
}

/* The status of a child that can only compute, and then makes `call`, or none: 0. It has written a
 * word before. */
static int status_of(enum before before, long call) {
    int status = -1;
    int ends[2];
    char word = 0;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        put_filter(before);
        if (!ml_compute_only()) {
            _exit(EXIT_OPEN);
        }
        const char said = WORD;
        if (write(ends[1], &said, 1) == 1 && call != 0) {
            (void)syscall(call, 0, 0, 0);
        }
        (void)syscall(SYS_exit, 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(read(ends[0], &word, 1) == 1 ? word : 0, before == WITHOUT_SECCOMP ? 0 : WORD);
    ck_assert_int_eq(close(ends[0]), 0);
    return status;
}

START_TEST(it_reads_and_writes_and_ends) {
    ck_assert_int_eq(status_of(BARE, 0), 0);
    ck_assert_int_eq(status_of(FILTERED, 0), 0);
    ck_assert_int_eq(status_of(FILTERED, SYS_read), 0);
}
END_TEST

START_TEST(any_other_call_ends_it) {
    const long calls[] = {SYS_getpid, SYS_openat, SYS_socket, SYS_mmap, SYS_kill, SYS_exit_group};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        ck_assert(WIFSIGNALED(status_of(BARE, calls[i])));
        const int status = status_of(FILTERED, calls[i]);
        ck_assert(WIFSIGNALED(status));
        ck_assert_int_eq(WTERMSIG(status), SIGSYS);
    }
}
END_TEST

START_TEST(where_neither_is_to_be_had_it_says_so) {
    const int status = status_of(WITHOUT_SECCOMP, 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), EXIT_OPEN);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("compute_only");
    tcase_add_test(cases, it_reads_and_writes_and_ends);
    tcase_add_test(cases, any_other_call_ends_it);
    tcase_add_test(cases, where_neither_is_to_be_had_it_says_so);
    return run_suite("compute_only", cases);
}
