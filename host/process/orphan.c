#include "host/process/orphan.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* fork(2) without libc's handlers: the host may be a thread of a program that holds any lock. */
static pid_t bare_fork(unsigned long exit_signal) {
    return (pid_t)syscall(SYS_clone, exit_signal, NULL, NULL, NULL, NULL);
}

/* The child in between raises no SIGCHLD and is seen by no wait but our own. */
pid_t ml_orphan_start(
    const struct ml_inherited *inherited,
    void (*child)(void *context),
    void *context,
    int *out_pidfd
) {
    int told[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, told) != 0) {
        return -1;
    }
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t between = bare_fork(0);
    if (between == 0) {
        /* Or it would keep its own question open when nobody is left to answer it. */
        (void)close(told[0]);
        pid_t orphan = bare_fork(SIGCHLD);
        if (orphan == 0) {
            sigset_t none;
            (void)setsid();
            if (inherited != NULL) {
                ml_inherited_restore(inherited);
            }
            (void)sigemptyset(&none);
            (void)sigprocmask(SIG_SETMASK, &none, NULL);
            child(context);
            _exit(127);
        }
        (void)!write(told[1], &orphan, sizeof(orphan));
        /* Not before its pidfd is taken: somebody may reap it then. */
        char byte = 0;
        (void)!read(told[1], &byte, 1);
        _exit(0);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)close(told[1]);
    pid_t orphan = -1;
    if (between > 0) {
        if (read(told[0], &orphan, sizeof(orphan)) != (ssize_t)sizeof(orphan)) {
            orphan = -1;
        }
        *out_pidfd = orphan > 0 ? (int)syscall(SYS_pidfd_open, orphan, 0) : -1;
    }
    (void)!send(told[0], "x", 1, MSG_NOSIGNAL);
    (void)close(told[0]);
    while (between > 0 && waitpid(between, NULL, (int)__WCLONE) < 0 && errno == EINTR) {
    }
    return orphan;
}
