/* Calls of the system in which a process waits while it is held: which go on, and which end with
 * EINTR, as docs/limits.md says. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#include "host/engine/views/holder.h"
#include "host/process/info.h"

enum { HOLDS = 3, PAUSE_MS = 10, TRIES = 3000, WAIT_S = 1000 };

/* Shared with the child. */
struct shared {
    atomic_int has_begun,
        error; /* error: errno of the call, -1 while it lasts, 0 if it succeeded */
    uint32_t futex;
};

static struct shared *shared;
static int ends[2];

static long wait_in_read(void) {
    char byte;
    return read(ends[0], &byte, 1);
}

static long wait_in_recv(void) {
    char byte;
    return recv(ends[0], &byte, 1, 0);
}

static long wait_in_nanosleep(void) {
    const struct timespec time = {.tv_sec = WAIT_S};
    return nanosleep(&time, NULL);
}

static long wait_in_clock_nanosleep(void) {
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_S;
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return errno != 0 ? -1 : 0;
}

static long wait_in_poll(void) {
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    return poll(&one, 1, WAIT_S * 1000);
}

static long wait_in_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval time = {.tv_sec = WAIT_S};
    return select(ends[0] + 1, &set, NULL, NULL, &time);
}

static long wait_in_futex(void) {
    const struct timespec time = {.tv_sec = WAIT_S};
    return syscall(SYS_futex, &shared->futex, FUTEX_WAIT, 0, &time, NULL, 0);
}

static long wait_in_waitpid(void) {
    const pid_t inner = fork();
    if (inner == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)pause();
        _exit(0);
    }
    return waitpid(inner, NULL, 0);
}

static long wait_in_pause(void) {
    return pause();
}

static long wait_in_epoll(void) {
    struct epoll_event event = {.events = EPOLLIN};
    const int fd = epoll_create1(0);
    (void)epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event);
    return epoll_wait(fd, &event, 1, -1);
}

static long wait_in_sigtimedwait(void) {
    sigset_t set;
    const struct timespec time = {.tv_sec = WAIT_S};
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return sigtimedwait(&set, NULL, &time);
}

static long wait_in_semop(void) {
    struct sembuf operation = {.sem_op = -1};
    const int id = semget(IPC_PRIVATE, 1, 0600);
    const long answer = semop(id, &operation, 1);
    const int error = errno;
    (void)semctl(id, 0, IPC_RMID);
    errno = error;
    return answer;
}

static long wait_in_inotify(void) {
    char event[256];
    return read(inotify_init1(IN_CLOEXEC), event, sizeof(event));
}

static long wait_in_timed_recv(void) {
    char byte;
    const struct timeval time = {.tv_sec = WAIT_S};
    (void)setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    return recv(ends[0], &byte, 1, 0);
}

/* error: of the call after it was held; -1: it lasts. */
static const struct {
    const char *name;
    long (*wait)(void);
    int error;
} calls[] = {
    {"read", wait_in_read, -1},
    {"recv", wait_in_recv, -1},
    {"nanosleep", wait_in_nanosleep, -1},
    {"clock_nanosleep", wait_in_clock_nanosleep, -1},
    {"poll", wait_in_poll, -1},
    {"select", wait_in_select, -1},
    {"futex", wait_in_futex, -1},
    {"waitpid", wait_in_waitpid, -1},
    {"pause", wait_in_pause, -1},
    {"read of inotify", wait_in_inotify, -1},
    {"epoll_wait", wait_in_epoll, EINTR},
    {"sigtimedwait", wait_in_sigtimedwait, EINTR},
    {"semop", wait_in_semop, EINTR},
    {"recv with a timeout", wait_in_timed_recv, EINTR},
};

static void pause_a_little(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    (void)nanosleep(&pause, NULL);
}

static bool sleeps(pid_t pid) {
    return atomic_load(&shared->has_begun) != 0 && ml_process_facts(pid).state == 'S';
}

static void wait_until_it_sleeps(pid_t pid) {
    for (int i = 0; i < TRIES && !sleeps(pid) && atomic_load(&shared->error) == -1; i++) {
        pause_a_little();
    }
}

static void run_call(long (*wait)(void)) {
    atomic_store(&shared->has_begun, 1);
    atomic_store(&shared->error, wait() >= 0 ? 0 : errno);
    (void)pause();
    _exit(0);
}

START_TEST(calls_go_on_but_for_those_that_the_kernel_ends_after_any_stop) {
    struct ml_holder holder;
    char why[ML_HOLD_WHY_BYTES];
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_gt(ml_holder_open(&holder, NULL), 0);
    *shared = (struct shared){.error = -1};
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpgid(0, 0);
        run_call(calls[_i].wait);
    }
    for (int i = 0; i < HOLDS; i++) {
        wait_until_it_sleeps(child);
        ck_assert_msg(ml_holder_hold(&holder, child, why), "%s: %s", calls[_i].name, why);
        ml_holder_release(&holder);
    }
    if (calls[_i].error < 0) {
        wait_until_it_sleeps(child);
    } else {
        for (int i = 0; i < TRIES && atomic_load(&shared->error) == -1; i++) {
            pause_a_little();
        }
    }
    ck_assert_msg(
        atomic_load(&shared->error) == calls[_i].error,
        "%s: %d",
        calls[_i].name,
        atomic_load(&shared->error)
    );
    (void)kill(-child, SIGKILL);
    (void)kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ml_holder_close(&holder);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(
        tests,
        calls_go_on_but_for_those_that_the_kernel_ends_after_any_stop,
        0,
        (int)(sizeof(calls) / sizeof(calls[0]))
    );
    return run_suite("host/view_interrupted", tests);
}
