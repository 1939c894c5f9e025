/* A thousand threads, or as many as are asked for. Most wait without a limit, each in one of
 * several calls, until one of a few others wakes it; then it allocates and waits again. Every
 * waking must be answered, once.
 *
 *   crowd [THREADS] */
#include "tests/oracle/steady/steady.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>

enum { THREADS = 1000, WORKERS = 16, WAKERS = 2, KINDS = 6, LONGEST_MS = 30000 };
enum kind { BY_READ = 0, BY_POLL, BY_EPOLL, BY_FUTEX, BY_CONDITION, BY_SEMAPHORE };

struct sleeper {
    enum kind kind;
    int fd, epoll_fd;
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    _Atomic uint32_t given; /* the futex, too */
    _Atomic uint32_t answered;
};
static struct sleeper sleepers[THREADS];
static uint32_t threads = THREADS;
static _Atomic uint32_t wakers_ended;

static bool take_from_fd(const struct sleeper *sleeper) {
    uint64_t count = 0;
    return read(sleeper->fd, &count, sizeof(count)) == sizeof(count) && count == 1;
}

static bool wait_in_kind(struct sleeper *sleeper, uint32_t had) {
    struct pollfd one = {.fd = sleeper->fd, .events = POLLIN};
    struct epoll_event event;
    switch (sleeper->kind) {
    case BY_READ:
        return take_from_fd(sleeper);
    case BY_POLL:
        return poll(&one, 1, -1) == 1 && take_from_fd(sleeper);
    case BY_EPOLL:
        return epoll_wait(sleeper->epoll_fd, &event, 1, -1) == 1 && take_from_fd(sleeper);
    case BY_FUTEX:
        while (atomic_load(&sleeper->given) == had) {
            errno = 0;
            if (syscall(SYS_futex, &sleeper->given, FUTEX_WAIT_PRIVATE, had, NULL, NULL, 0) != 0 &&
                errno != EAGAIN) {
                return false;
            }
        }
        return true;
    case BY_CONDITION:
        (void)pthread_mutex_lock(&sleeper->mutex);
        while (atomic_load(&sleeper->given) == had) {
            (void)pthread_cond_wait(&sleeper->condition, &sleeper->mutex);
        }
        (void)pthread_mutex_unlock(&sleeper->mutex);
        return true;
    default:
        return sem_wait(&sleeper->semaphore) == 0;
    }
}

static void wake(struct sleeper *sleeper) {
    const uint64_t one = 1;
    (void)pthread_mutex_lock(&sleeper->mutex);
    atomic_fetch_add(&sleeper->given, 1);
    (void)pthread_cond_signal(&sleeper->condition);
    (void)pthread_mutex_unlock(&sleeper->mutex);
    if (sleeper->kind == BY_FUTEX) {
        (void)syscall(SYS_futex, &sleeper->given, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    } else if (sleeper->kind == BY_SEMAPHORE) {
        (void)sem_post(&sleeper->semaphore);
    } else if (sleeper->kind != BY_CONDITION) {
        (void)!write(sleeper->fd, &one, sizeof(one));
    }
}

static void *sleep_and_wake(void *argument) {
    struct sleeper *sleeper = argument;
    for (uint32_t had = 0;; had++) {
        errno = 0;
        while (!wait_in_kind(sleeper, had)) {
            steady_count(false, "a wait", (long)sleeper->kind * 1000 + errno);
        }
        steady_count(steady_blocks(had), "blocks", sleeper->kind);
        atomic_fetch_add(&sleeper->answered, 1);
    }
    return NULL;
}

static void *work(void *argument) {
    for (uint64_t turn = (uint64_t)(uintptr_t)argument;; turn++) {
        steady_count(steady_blocks(turn), "blocks", 0);
        steady_sleep_us(2000);
    }
    return NULL;
}

/* Its own part of the sleepers, one after the other. */
static void *run_wakings(void *argument) {
    const uint32_t part = (uint32_t)(uintptr_t)argument;
    for (uint32_t i = part; !steady_is_over(); i += WAKERS) {
        struct sleeper *sleeper = &sleepers[i % threads];
        const uint64_t deadline_ns = steady_now_ns() + (uint64_t)LONGEST_MS * STEADY_NS_A_MS;
        wake(sleeper);
        while (atomic_load(&sleeper->answered) != atomic_load(&sleeper->given) &&
               steady_now_ns() < deadline_ns) {
            steady_sleep_us(200);
        }
        steady_count(
            atomic_load(&sleeper->answered) == atomic_load(&sleeper->given),
            "no answer",
            sleeper->kind
        );
    }
    atomic_fetch_add(&wakers_ended, 1);
    return NULL;
}

static void prepare(struct sleeper *sleeper, enum kind kind) {
    struct epoll_event event = {.events = EPOLLIN};
    sleeper->kind = kind;
    sleeper->fd = kind <= BY_EPOLL ? eventfd(0, EFD_CLOEXEC) : -1;
    if (kind == BY_EPOLL) {
        sleeper->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        (void)epoll_ctl(sleeper->epoll_fd, EPOLL_CTL_ADD, sleeper->fd, &event);
    }
    (void)sem_init(&sleeper->semaphore, 0, 0);
    (void)pthread_mutex_init(&sleeper->mutex, NULL);
    (void)pthread_cond_init(&sleeper->condition, NULL);
}

int main(int count, char **words) {
    struct rlimit limit;
    const unsigned long asked = count > 1 ? strtoul(words[1], NULL, 10) : THREADS;
    threads = asked > 0 && asked < THREADS ? (uint32_t)asked : THREADS;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    for (uint32_t i = 0; i < threads; i++) {
        prepare(&sleepers[i], (enum kind)(i % KINDS));
        steady_thread(sleep_and_wake, &sleepers[i]);
    }
    for (uintptr_t i = 0; i < WORKERS; i++) {
        steady_thread(work, (void *)(i << 32));
    }
    for (uintptr_t i = 0; i < WAKERS; i++) {
        steady_thread(run_wakings, (void *)i);
    }
    steady_wait();
    while (atomic_load(&wakers_ended) < WAKERS) {
        steady_sleep_us(1000);
    }
    for (uint32_t i = 0; i < threads; i++) {
        steady_count(sleepers[i].answered == sleepers[i].given, "answers", sleepers[i].kind);
    }
    return steady_end();
}
