#include "host/process/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Its status; false when there is no such child any more. */
static bool wait_for(pid_t pid, int *out_status) {
    pid_t answer = -1;
    do {
        answer = waitpid(pid, out_status, 0);
    } while (answer < 0 && errno == EINTR);
    return answer == pid;
}

static int open_executable(pid_t pid) {
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

enum ml_image_kind ml_probe_program(char *const *argv, int *out_executable_fd) {
    if (out_executable_fd != NULL) {
        *out_executable_fd = -1;
    }
    enum ml_image_kind kind = ML_IMAGE_GONE;
    const pid_t host = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        /* A host that is killed now must not leave a try behind that runs on as the program. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == host &&
            ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0) {
            (void)execvp(argv[0], argv);
        }
        _exit(0);
    }
    int status = 0;
    if (pid < 0 || !wait_for(pid, &status)) {
        return kind;
    }
    if (WIFSTOPPED(status)) {
        kind = ml_image_look(pid);
        if (out_executable_fd != NULL) {
            *out_executable_fd = open_executable(pid);
        }
        (void)kill(pid, SIGKILL);
        (void)wait_for(pid, &status);
    }
    return kind;
}
