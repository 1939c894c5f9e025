/* No descriptor is left behind a number, with close_range and without. */
#include "base/descriptors/close_above.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { LAST = 5, MANY = 500, FAR = 900 };

static bool forbid_close_range(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = sizeof(lines) / sizeof(lines[0]), .filter = lines};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool is_open(int fd) {
    return fcntl(fd, F_GETFD) >= 0;
}

/* 0: those up to LAST are there, and none above. */
static int closed_above(bool with_close_range) {
    for (int fd = 3; fd < MANY; fd++) {
        (void)dup2(STDERR_FILENO, fd);
    }
    (void)dup2(STDERR_FILENO, FAR);
    if (!with_close_range && !forbid_close_range()) {
        return 1;
    }
    ml_close_above(LAST);
    for (int fd = 0; fd <= FAR; fd++) {
        if (is_open(fd) != (fd <= LAST)) {
            return 2;
        }
    }
    return 0;
}

static void hold(bool with_close_range) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        _exit(closed_above(with_close_range));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

START_TEST(all_above_are_closed_and_none_below) {
    hold(true);
}
END_TEST

START_TEST(likewise_without_close_range) {
    hold(false);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("close_above");
    tcase_add_test(cases, all_above_are_closed_and_none_below);
    tcase_add_test(cases, likewise_without_close_range);
    return run_suite("close_above", cases);
}
