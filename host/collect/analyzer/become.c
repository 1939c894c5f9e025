#include "host/collect/analyzer/become.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/descriptors/close_above.h"

enum { COLLECTOR_FD = 3, COMMAND_BYTES = 16 };

static bool limit(int what, uint64_t most) {
    const struct rlimit limits = {.rlim_cur = most, .rlim_max = most};
    return setrlimit(what, &limits) == 0;
}

/* By SIGXCPU and not by SIGKILL, which is what others send. */
static bool limit_cpu(void) {
    const struct rlimit limits = {.rlim_cur = ML_ANALYZER_CPU_S, .rlim_max = ML_ANALYZER_CPU_S + 1};
    return setrlimit(RLIMIT_CPU, &limits) == 0;
}

/* Where memory is short it goes before the collector does. */
static void die_first(void) {
    static const char most[] = "1000";
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, most, sizeof(most) - 1);
    }
}

/* Whoever it reads for may be killed. False: that has happened, and nobody holds the other end. */
static bool end_with_collector(void) {
    struct pollfd collector = {.fd = COLLECTOR_FD};
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && poll(&collector, 1, 0) >= 0 &&
           (collector.revents & (POLLHUP | POLLERR)) == 0;
}

void ml_analyzer_become(const char *path, const char *command, int file_fd, int socket_fd) {
    static char name[] = "memlog";
    char word[COMMAND_BYTES];
    char *const arguments[] = {name, word, NULL};
    char *const environment[] = {NULL};
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int body = fcntl(file_fd, F_DUPFD_CLOEXEC, 16);
    const int socket = fcntl(socket_fd, F_DUPFD_CLOEXEC, 16);
    sigset_t none;
    for (size_t i = 0; i < COMMAND_BYTES; i++) {
        word[i] = command[i < strlen(command) ? i : strlen(command)];
    }
    word[COMMAND_BYTES - 1] = '\0';
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid();
    if (nothing < 0 || body < 0 || socket < 0 || dup2(body, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0 ||
        dup2(socket, COLLECTOR_FD) < 0) {
        _exit(ML_ANALYZER_NOT_STARTED);
    }
    ml_close_above(COLLECTOR_FD);
    die_first();
    if (end_with_collector() && limit_cpu() && limit(RLIMIT_AS, ML_ANALYZER_MEMORY_BYTES) &&
        limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0)) {
        (void)execve(path, arguments, environment);
    }
    _exit(ML_ANALYZER_NOT_STARTED);
}
