/* A file system that never answers. Room: tests. */
#ifndef MEMLOG_TESTS_HOST_KERNEL_SILENT_TMP_H
#define MEMLOG_TESTS_HOST_KERNEL_SILENT_TMP_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

/* A process whose /tmp is a file system that never answers, in a mount namespace of its own.
 * Returns its pid once that is so; 0: it cannot be made here. */
static inline pid_t with_silent_tmp(void) {
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        char options[96];
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int device = open("/dev/fuse", O_RDWR);
        (void
        )snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
        if (device < 0 || unshare(CLONE_NEWNS) != 0 ||
            mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("memlog-test", "/tmp", "fuse", 0, options) != 0) {
            _exit(1);
        }
        (void)!write(ready[1], "", 1);
        (void)pause();
        _exit(0);
    }
    (void)close(ready[1]);
    const bool is_ready = read(ready[0], &byte, 1) == 1;
    (void)close(ready[0]);
    if (!is_ready) {
        (void)waitpid(pid, NULL, 0);
    }
    return is_ready ? pid : 0;
}

#endif
