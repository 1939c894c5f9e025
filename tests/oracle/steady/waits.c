/* Threads that wait with a limit all the time, two in each way; no wait may answer EINTR or end
 * before its limit. How much later than it each ended is told on stderr, by its way: the median and
 * the most, in ms. */
#include "tests/oracle/steady/steady.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { EACH = 2, SLOTS = 20000, LIMIT_LEAST_MS = 20, LIMIT_MOST_MS = 300 };

struct things {
    int pipe_fds[2], pair_fds[2], epoll_fd, set_id;
    uint32_t word;
    sigset_t signals;
};

static struct timespec span(uint64_t limit_ms) {
    return (struct timespec
    ){.tv_sec = (time_t)(limit_ms / 1000), .tv_nsec = (long)(limit_ms % 1000) * STEADY_NS_A_MS};
}

/* Each answers 0 where it ended by its limit, errno or -1 else. */
static int none(long result) {
    return result == 0 ? 0 : result < 0 ? errno : -1;
}

static int by_error(long result, int wanted) {
    return result < 0 && errno == wanted ? 0 : result < 0 ? errno : -1;
}

static int by_poll(struct things *things, uint64_t limit_ms) {
    struct pollfd one = {.fd = things->pipe_fds[0], .events = POLLIN};
    return none(poll(&one, 1, (int)limit_ms));
}

static int by_epoll(struct things *things, uint64_t limit_ms) {
    struct epoll_event event;
    return none(epoll_wait(things->epoll_fd, &event, 1, (int)limit_ms));
}

static int by_select(struct things *things, uint64_t limit_ms) {
    struct timeval limit = {.tv_usec = (suseconds_t)limit_ms * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(things->pipe_fds[0], &set);
    return none(select(things->pipe_fds[0] + 1, &set, NULL, NULL, &limit));
}

static int by_nanosleep(struct things *things, uint64_t limit_ms) {
    const struct timespec limit = span(limit_ms);
    struct timespec rest;
    (void)things;
    return none(nanosleep(&limit, &rest));
}

static int by_futex(struct things *things, uint64_t limit_ms) {
    const struct timespec limit = span(limit_ms);
    return by_error(
        syscall(SYS_futex, &things->word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0), ETIMEDOUT
    );
}

static int by_sigtimedwait(struct things *things, uint64_t limit_ms) {
    const struct timespec limit = span(limit_ms);
    return by_error(sigtimedwait(&things->signals, NULL, &limit), EAGAIN);
}

static int by_semtimedop(struct things *things, uint64_t limit_ms) {
    const struct timespec limit = span(limit_ms);
    struct sembuf operation = {.sem_num = 0, .sem_op = -1};
    return by_error(semtimedop(things->set_id, &operation, 1, &limit), EAGAIN);
}

static int by_recv(struct things *things, uint64_t limit_ms) {
    const struct timeval limit = {.tv_usec = (suseconds_t)limit_ms * 1000};
    char byte;
    (void)setsockopt(things->pair_fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return by_error(recv(things->pair_fds[0], &byte, 1, 0), EAGAIN);
}

static int by_condition(struct things *things, uint64_t limit_ms) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec at;
    (void)things;
    (void)clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += (long)limit_ms * STEADY_NS_A_MS;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&mutex);
    const int result = pthread_cond_timedwait(&condition, &mutex, &at);
    (void)pthread_mutex_unlock(&mutex);
    return result == ETIMEDOUT ? 0 : result;
}

static const struct way {
    const char *name;
    int (*wait)(struct things *things, uint64_t limit_ms);
} ways[] = {
    {"poll", by_poll},
    {"epoll_wait", by_epoll},
    {"select", by_select},
    {"nanosleep", by_nanosleep},
    {"futex", by_futex},
    {"pthread_cond_timedwait", by_condition},
    {"sigtimedwait", by_sigtimedwait},
    {"semtimedop", by_semtimedop},
    {"recv", by_recv},
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* How much later than its limit each wait ended, in µs. */
static struct {
    _Atomic uint32_t count;
    uint32_t late_us[SLOTS];
} books[WAYS];
static _Atomic uint32_t ended;

static void prepare(struct things *things) {
    struct epoll_event event = {.events = EPOLLIN};
    (void)!pipe(things->pipe_fds);
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, things->pair_fds);
    things->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    (void)epoll_ctl(things->epoll_fd, EPOLL_CTL_ADD, things->pipe_fds[0], &event);
    things->set_id = semget(IPC_PRIVATE, 1, 0600);
    (void)sigemptyset(&things->signals);
    (void)sigaddset(&things->signals, SIGUSR2);
}

static void *run(void *argument) {
    const uint32_t number = (uint32_t)(uintptr_t)argument;
    const struct way *way = &ways[number % WAYS];
    struct things things = {.word = 0};
    uint64_t random = number * 7919 + 1;
    prepare(&things);
    while (!steady_is_over()) {
        const uint64_t limit_ms =
            LIMIT_LEAST_MS + steady_next(&random) % (LIMIT_MOST_MS - LIMIT_LEAST_MS);
        const uint64_t since_ns = steady_now_ns();
        const int answer = way->wait(&things, limit_ms);
        const int64_t late_us =
            ((int64_t)(steady_now_ns() - since_ns) - (int64_t)(limit_ms * STEADY_NS_A_MS)) / 1000;
        steady_count(answer == 0, way->name, answer);
        /* The kernel's clocks for some of them are coarse: one tick. */
        steady_count(late_us >= -4000, "a wait that ended early, µs", (long)late_us);
        const uint32_t slot = atomic_fetch_add(&books[number % WAYS].count, 1);
        if (slot < SLOTS) {
            books[number % WAYS].late_us[slot] = late_us > 0 ? (uint32_t)late_us : 0;
        }
        steady_count(steady_blocks(random), "blocks", 0);
    }
    (void)semctl(things.set_id, 0, IPC_RMID);
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static int compare(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void tell(void) {
    for (uint32_t i = 0; i < WAYS; i++) {
        const uint32_t count = books[i].count < SLOTS ? books[i].count : SLOTS;
        qsort(books[i].late_us, count, sizeof(books[i].late_us[0]), compare);
        const uint32_t middle = count / 2;
        (void)fprintf(
            stderr,
            "%s: %u waits, later than the limit by %.1f ms in the median, %.1f at most\n",
            ways[i].name,
            count,
            count > 0 ? books[i].late_us[middle] / 1e3 : 0,
            count > 0 ? books[i].late_us[count - 1] / 1e3 : 0
        );
    }
}

int main(void) {
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGUSR2);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    for (uintptr_t i = 0; i < (uintptr_t)WAYS * EACH; i++) {
        steady_thread(run, (void *)i);
    }
    steady_wait();
    while (atomic_load(&ended) < WAYS * EACH) {
        steady_sleep_us(1000);
    }
    tell();
    return steady_end();
}
