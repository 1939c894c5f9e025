/* A process that nobody has to wait for, and what is left when its host dies over it. */
#include "host/process/orphan.h"

#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { ORPHAN_CODE = 23, WAIT_S = 60 };

static void end_at_once(void *context) {
    _exit(*(const int *)context);
}

/* Whoever has lost his parent is ours: how many of them end. */
static int reap_all(void) {
    int count = 0;
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR) {
        count++;
    }
    return count;
}

START_TEST(it_runs_and_is_known_by_a_descriptor) {
    int code = ORPHAN_CODE;
    int pidfd = -1;
    siginfo_t info = {.si_pid = 0};
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    const pid_t orphan = ml_orphan_start(NULL, end_at_once, &code, &pidfd);
    ck_assert_int_gt(orphan, 0);
    ck_assert_int_ge(pidfd, 0);
    ck_assert_int_eq(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
    ck_assert_int_eq(info.si_pid, orphan);
    ck_assert_int_eq(info.si_status, ORPHAN_CODE);
    ck_assert_int_eq(reap_all(), 0);
    (void)close(pidfd);
}
END_TEST

/* A host that dies where it asks for the pidfd, while the process in between still waits for it. */
static void be_a_host_that_dies(void) {
    int code = ORPHAN_CODE;
    int pidfd = -1;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL ||
        seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(pidfd_open), 0) != 0 ||
        seccomp_load(filter) != 0) {
        _exit(1);
    }
    (void)ml_orphan_start(NULL, end_at_once, &code, &pidfd);
    _exit(0);
}

START_TEST(nobody_is_left_when_the_host_dies_over_it) {
    int status = 0;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    const pid_t host = fork();
    if (host == 0) {
        be_a_host_that_dies();
    }
    ck_assert_int_eq(waitpid(host, &status, 0), host);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    ck_assert_int_eq(reap_all(), 2); /* hangs where one of them does */
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("orphan");
    tcase_set_timeout(tcase, WAIT_S);
    tcase_add_test(tcase, it_runs_and_is_known_by_a_descriptor);
    tcase_add_test(tcase, nobody_is_left_when_the_host_dies_over_it);
    return run_suite("host/orphan", tcase);
}
