#include "tools/analyzer/helpers/watched.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Until the child ends. End it when nobody wants its answer any more. False: nobody does. */
static bool watch(int status_fd, pid_t child) {
    const int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd fds[] = {{.fd = status_fd}, {.fd = pidfd, .events = POLLIN}};
    bool is_wanted = true;

    /* Before Linux 5.3 there is no pidfd, and the child is waited for alone. */
    while (pidfd >= 0 && is_wanted && fds[1].revents == 0) {
        const int ready = poll(fds, sizeof fds / sizeof fds[0], -1);
        is_wanted = ready < 0 ? errno == EINTR : fds[0].revents == 0;
    }
    if (!is_wanted) {
        (void)kill(child, SIGKILL);
    }
    return is_wanted;
}

/* Children of the child's, which are this process's now. They die with their parent by themselves,
 * but for one that has just been forked, stands still and has not asked for it yet. */
static void end_left_ones(void) {
    FILE *children = fopen("/proc/thread-self/children", "re");
    int pid = 0;

    while (children != NULL && fscanf(children, "%d", &pid) == 1) {
        (void)kill(pid, SIGKILL);
    }
    if (children != NULL) {
        (void)fclose(children);
    }
}

void ml_watched_begin(int status_fd) {
    const pid_t parent = getpid();
    int status = 0;

    /* The host's program may ignore it, and then nobody could be waited for. */
    (void)signal(SIGCHLD, SIG_DFL);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(EXIT_FAILURE);
        }
        (void)close(status_fd);
        return;
    }
    if (child > 0) {
        (void)signal(SIGPIPE, SIG_IGN); /* who does not want the status may not read it */
        const bool is_wanted = watch(status_fd, child);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        (void)!write(status_fd, &status, sizeof status);
        (void)close(status_fd);
        /* A helper that hangs in a file system ends when it can, and is not the host's to wait
         * for. */
        do {
            if (!is_wanted) {
                end_left_ones();
            }
        } while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
    }
    _exit(EXIT_SUCCESS);
}
