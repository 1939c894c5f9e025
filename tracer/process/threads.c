#include "tracer/process/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/threads/thread_list.h"
#include "tracer/process/target.h"

enum {
    EVENT_SHIFT = 16,      /* of a wait status: the ptrace event */
    RESTART_NO_HAND = 514, /* ERESTARTNOHAND of the kernel: made again unless a handler runs */
    POLL_NS = 30000,       /* between two looks whether a thread has stopped */
    PASSES_MAX = 1000,     /* over a list of threads that grows all the time */
    HOLD_MS = 100,         /* all others stand still for one that sleeps deep */
    SLEEPER_PAUSE_US = 1000,
    SYSCALL_BYTES = 256 /* of /proc/PID/task/ID/syscall */
};

#define SLEEPS_DEEP                                                                                \
    "a thread of it sleeps where nothing stops it, as in vfork, for a disk, or frozen: try again"

void ml_threads_init(struct ml_threads *threads, pid_t pid) {
    *threads = (struct ml_threads){.pid = pid};
}

size_t ml_threads_list(pid_t pid, pid_t *out_ids, size_t most) {
    char path[64];
    size_t count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return 0;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL && count < most;
         entry = readdir(folder)) {
        char *end = NULL;
        const long id = strtol(entry->d_name, &end, 10);
        if (id > 0 && *end == '\0') {
            out_ids[count++] = (pid_t)id;
        }
    }
    (void)closedir(folder);
    return count;
}

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t after_ms(uint32_t count) {
    return now_ns() + (uint64_t)count * 1000000u;
}

/* ---- one thread */

static bool wait_until(struct ml_traced *thread, uint64_t deadline_ns, int *out_status) {
    const struct timespec pause = {.tv_nsec = POLL_NS};
    for (uint32_t look = 0; now_ns() < deadline_ns; look++) {
        const pid_t got = waitpid(thread->id, out_status, __WALL | WNOHANG);
        if (got < 0 && errno != EINTR) {
            thread->state = ML_TRACED_GONE;
            return false;
        }
        if (got == thread->id) {
            const bool is_there = WIFSTOPPED(*out_status);
            thread->state = is_there ? ML_TRACED_STOPPED : ML_TRACED_GONE;
            return is_there;
        }
        if (look > 20) { /* at first it is about to stop */
            (void)nanosleep(&pause, NULL);
        }
    }
    return false;
}

bool ml_threads_wait(struct ml_traced *thread, int *out_status) {
    return wait_until(thread, after_ms(ML_THREADS_WAIT_MS), out_status);
}

/* A signal that came first is kept: it is delivered when the thread goes on. The stop that was
 * asked for is asked for again before that: any stop counts for it, if it was asked for in the
 * moment in which the kernel has taken a timer's signal and arms the timer. */
static bool go_on(struct ml_traced *thread, int status) {
    const bool is_event = status >> EVENT_SHIFT != 0 || WSTOPSIG(status) == (SIGTRAP | 0x80);
    const int signal = is_event ? 0 : WSTOPSIG(status);
    thread->state = ML_TRACED_RUNNING;
    return ptrace(PTRACE_INTERRUPT, thread->id, NULL, NULL) == 0 &&
           ptrace(PTRACE_CONT, thread->id, NULL, (void *)(long)signal) == 0;
}

/* Within ML_THREADS_WAIT_MS, however many signals come. */
static bool wait_for_interrupt(struct ml_traced *thread) {
    const uint64_t deadline_ns = after_ms(ML_THREADS_WAIT_MS);
    int status = 0;
    while (wait_until(thread, deadline_ns, &status)) {
        if (status >> EVENT_SHIFT == PTRACE_EVENT_STOP) {
            return true;
        }
        if (!go_on(thread, status)) {
            thread->state = ML_TRACED_GONE;
            return false;
        }
    }
    return false;
}

bool ml_threads_interrupt(struct ml_traced *thread) {
    if (ptrace(PTRACE_INTERRUPT, thread->id, NULL, NULL) != 0) {
        thread->state = ML_TRACED_GONE;
        return false;
    }
    return wait_for_interrupt(thread);
}

/* These calls answer EINTR to a signal that has no handler, as a stop is one. */
static bool is_told_of_stops(long number) {
    switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
    /* Of a socket with a time limit (SO_RCVTIMEO, SO_SNDTIMEO). Where something has been passed on,
     * they answer how much. */
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_accept:
    case SYS_accept4:
    case SYS_fallocate: /* in a tmpfs; what it had so far is undone */
        return true;
    default:
        return false;
    }
}

/* Whether it sleeps in such a call now. */
static bool is_in_told_call(pid_t pid, pid_t id) {
    char path[64];
    char text[SYSCALL_BYTES];
    char *end = NULL;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)id);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (count <= 0) {
        return false;
    }
    text[count] = '\0';
    const long number = strtol(text, &end, 10);
    return end != text && number >= 0 && is_told_of_stops(number); /* else "running" */
}

void ml_threads_mend_call(struct user_regs_struct *registers) {
    if ((long)registers->rax == -EINTR && is_told_of_stops((long)registers->orig_rax)) {
        registers->rax = (unsigned long long)-RESTART_NO_HAND;
    }
}

static void mend_call_of(const struct ml_traced *thread) {
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread->id, NULL, &registers) == 0) {
        const struct user_regs_struct before = registers;
        ml_threads_mend_call(&registers);
        if (registers.rax != before.rax) {
            (void)ptrace(PTRACE_SETREGS, thread->id, NULL, &registers);
        }
    }
}

bool ml_threads_dispatch(const struct ml_traced *thread) {
    enum { GET_DISPATCH = 0x4211, OFF = 0 };
    struct {
        uint64_t mode, selector, offset, count;
    } told = {.mode = OFF};
    return ptrace((enum __ptrace_request)GET_DISPATCH, thread->id, (void *)sizeof(told), &told) ==
               0 &&
           told.mode != OFF;
}

/* ---- all of them */

static struct ml_traced *find(const struct ml_threads *threads, pid_t id) {
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->list[i].id == id) {
            return &threads->list[i];
        }
    }
    return NULL;
}

static bool add(struct ml_threads *threads, pid_t id) {
    if (threads->count == threads->room) {
        const size_t room = threads->room * 2 + 64;
        struct ml_traced *larger = realloc(threads->list, room * sizeof(*larger));
        if (larger == NULL) {
            return false;
        }
        threads->list = larger;
        threads->room = room;
    }
    threads->list[threads->count++] = (struct ml_traced){.id = id};
    return true;
}

static enum ml_thread_taken seize(void *context, pid_t id) {
    struct ml_threads *threads = context;
    if (find(threads, id) != NULL) {
        return ML_THREAD_HAD;
    }
    if (ptrace(PTRACE_SEIZE, id, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD) != 0) {
        const int error = errno;
        /* It slept deep, and could not be let go: it is ours still. */
        if (error == EPERM && ptrace(PTRACE_INTERRUPT, id, NULL, NULL) == 0) {
            return add(threads, id) ? ML_THREAD_NEW : ML_THREAD_FORBIDDEN;
        }
        const enum ml_thread_taken taken = ml_thread_not_seized(threads->pid, id, error);
        threads->forbidden = taken == ML_THREAD_FORBIDDEN ? id : threads->forbidden;
        errno = error;
        return taken;
    }
    if (!add(threads, id)) {
        (void)ptrace(PTRACE_DETACH, id, NULL, NULL);
        errno = ENOMEM;
        return ML_THREAD_FORBIDDEN;
    }
    return ML_THREAD_NEW;
}

/* A debugger may have a single thread; the process itself says nothing of it. */
static void tell_forbidden(const struct ml_threads *threads, struct ml_error_message *error) {
    const int number = errno;
    const pid_t tracer =
        threads->forbidden != 0 ? ml_target_tracer(threads->pid, threads->forbidden) : 0;
    if (tracer != 0) {
        ml_error_set(
            error,
            "process %d traces a thread of it (%d), and a thread has one tracer: end that first",
            (int)tracer,
            (int)threads->forbidden
        );
    } else {
        ml_error_set(error, "the kernel lets nobody trace it: %s", strerror(number));
    }
}

bool ml_threads_stop_one(struct ml_threads *threads, pid_t id, struct ml_error_message *error) {
    if (ml_target_sleeps_deep(threads->pid, id)) {
        ml_error_set(error, SLEEPS_DEEP);
        return false;
    }
    if (seize(threads, id) == ML_THREAD_FORBIDDEN) {
        tell_forbidden(threads, error);
        return false;
    }
    struct ml_traced *thread = find(threads, id);
    if (thread == NULL || !ml_threads_interrupt(thread)) {
        ml_error_set(error, "a thread of it ended, or does not stop");
        return false;
    }
    mend_call_of(thread);
    return true;
}

/* What one of them has told. False: it has not come to its stop yet. */
static bool take_status(struct ml_traced *thread, int status) {
    if (!WIFSTOPPED(status)) {
        thread->state = ML_TRACED_GONE;
    } else if (status >> EVENT_SHIFT == PTRACE_EVENT_STOP) {
        thread->state = ML_TRACED_STOPPED;
        mend_call_of(thread);
    } else if (!go_on(thread, status)) {
        thread->state = ML_TRACED_GONE;
    }
    return thread->state != ML_TRACED_RUNNING;
}

/* Whether nobody can be waited for but who sleeps deep. */
static bool do_sleep_deep(const struct ml_threads *threads) {
    for (size_t i = 0; i < threads->count; i++) {
        const struct ml_traced *thread = &threads->list[i];
        if (thread->state == ML_TRACED_RUNNING &&
            !ml_target_sleeps_deep(threads->pid, thread->id)) {
            return false;
        }
    }
    return true;
}

static size_t running(const struct ml_threads *threads) {
    size_t count = 0;
    for (size_t i = 0; i < threads->count; i++) {
        count += threads->list[i].state == ML_TRACED_RUNNING;
    }
    return count;
}

/* In the order in which they stop. As long as one after the other does, it goes on; a signal that
 * came first is no stop. Who sleeps deep is not waited for long. */
static void wait_for_all(struct ml_threads *threads) {
    const struct timespec pause = {.tv_nsec = POLL_NS};
    size_t left = running(threads);
    uint64_t deadline_ns = after_ms(ML_THREADS_WAIT_MS);
    uint64_t hold_ns = after_ms(HOLD_MS);
    while (left > 0 && now_ns() < deadline_ns) {
        int status = 0;
        const pid_t got = waitpid(-1, &status, __WALL | WNOHANG);
        struct ml_traced *thread = got > 0 ? find(threads, got) : NULL;
        if (thread != NULL && thread->state == ML_TRACED_RUNNING) {
            if (take_status(thread, status)) {
                left--;
                deadline_ns = after_ms(ML_THREADS_WAIT_MS);
                hold_ns = after_ms(HOLD_MS);
            }
        } else if (got < 0 && errno != EINTR) {
            return;
        } else if (got == 0) {
            if (now_ns() > hold_ns && do_sleep_deep(threads)) {
                return;
            }
            hold_ns = now_ns() > hold_ns ? after_ms(HOLD_MS) : hold_ns;
            (void)nanosleep(&pause, NULL);
        }
    }
}

/* A tracer that is killed lets go of its threads, and whose call has answered EINTR by then keeps
 * that. So those that sleep in a call that does are stopped first, one after the other, each mended
 * before the next; all others at once. */
static void interrupt_all(struct ml_threads *threads) {
    for (size_t i = 0; i < threads->count; i++) {
        struct ml_traced *thread = &threads->list[i];
        if (thread->state == ML_TRACED_RUNNING && is_in_told_call(threads->pid, thread->id) &&
            ml_threads_interrupt(thread)) {
            mend_call_of(thread);
        }
    }
    for (size_t i = 0; i < threads->count; i++) {
        struct ml_traced *thread = &threads->list[i];
        if (thread->state == ML_TRACED_RUNNING &&
            ptrace(PTRACE_INTERRUPT, thread->id, NULL, NULL) != 0) {
            thread->state = ML_TRACED_GONE;
        }
    }
    wait_for_all(threads);
    /* Who could not be waited for, as the leader that has ended before others, is asked once. */
    for (size_t i = 0; i < threads->count; i++) {
        struct ml_traced *thread = &threads->list[i];
        int status = 0;
        if (thread->state == ML_TRACED_RUNNING &&
            waitpid(thread->id, &status, __WALL | WNOHANG) < 0) {
            thread->state = ML_TRACED_GONE;
        }
    }
}

static bool are_stopped(const struct ml_threads *threads) {
    size_t stopped = 0;
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->list[i].state == ML_TRACED_RUNNING) {
            return false;
        }
        stopped += threads->list[i].state == ML_TRACED_STOPPED;
    }
    return stopped > 0;
}

/* False, with an error message: the kernel forbids it. */
static bool
stop_each(struct ml_threads *threads, bool *out_are_stopped, struct ml_error_message *error) {
    enum ml_thread_pass pass = ML_THREAD_PASS_UNSETTLED;
    threads->since_ns = now_ns();
    for (uint32_t i = 0; pass == ML_THREAD_PASS_UNSETTLED && i < PASSES_MAX; i++) {
        pass = ml_thread_list_pass(threads->pid, seize, threads);
        if (pass == ML_THREAD_PASS_FORBIDDEN) {
            tell_forbidden(threads, error);
            return false;
        }
        interrupt_all(threads);
        if (running(threads) > 0) {
            break;
        }
    }
    *out_are_stopped = pass == ML_THREAD_PASS_SETTLED && are_stopped(threads);
    return true;
}

/* Let the stopped ones go, and forget them. */
static void let_stopped_go(struct ml_threads *threads) {
    const uint64_t held_ns = now_ns() - threads->since_ns;
    size_t kept = 0;
    threads->held_ns = held_ns > threads->held_ns ? held_ns : threads->held_ns;
    for (size_t i = 0; i < threads->count; i++) {
        struct ml_traced *thread = &threads->list[i];
        if (thread->state == ML_TRACED_STOPPED) {
            (void)ptrace(PTRACE_DETACH, thread->id, NULL, (void *)(long)thread->signal);
        } else if (thread->state == ML_TRACED_RUNNING) {
            threads->list[kept++] = *thread;
        }
    }
    threads->count = kept;
}

/* Meanwhile the others go on. */
static void wait_for_sleepers(struct ml_threads *threads, uint64_t deadline_ns) {
    const struct timespec pause = {.tv_nsec = SLEEPER_PAUSE_US * 1000L};
    while (running(threads) > 0 && now_ns() < deadline_ns) {
        for (size_t i = 0; i < threads->count; i++) {
            struct ml_traced *thread = &threads->list[i];
            int status = 0;
            const pid_t got = thread->state == ML_TRACED_RUNNING
                                  ? waitpid(thread->id, &status, __WALL | WNOHANG)
                                  : 0;
            if (got == thread->id) {
                (void)take_status(thread, status);
            } else if (got < 0 && errno != EINTR) {
                thread->state = ML_TRACED_GONE;
            }
        }
        (void)nanosleep(&pause, NULL);
    }
}

bool ml_threads_stop_all(struct ml_threads *threads, struct ml_error_message *error) {
    const uint64_t deadline_ns = after_ms(ML_THREADS_WAIT_MS);
    bool are_all_stopped = false;
    bool may_trace = stop_each(threads, &are_all_stopped, error);
    while (may_trace && !are_all_stopped && running(threads) > 0 && now_ns() < deadline_ns) {
        let_stopped_go(threads);
        wait_for_sleepers(threads, deadline_ns);
        may_trace = stop_each(threads, &are_all_stopped, error);
    }
    if (may_trace && are_all_stopped) {
        return true;
    }
    if (may_trace) {
        const bool are_deep = running(threads) > 0 && do_sleep_deep(threads);
        ml_error_set(error, are_deep ? SLEEPS_DEEP : "its threads do not stop, or it has ended");
    }
    ml_threads_let_go(threads);
    return false;
}

void ml_threads_let_go(struct ml_threads *threads) {
    for (size_t i = 0; i < threads->count; i++) {
        struct ml_traced *thread = &threads->list[i];
        /* Only a stopped one can be left. Who sleeps deep is let go when it wakes, by the next stop
         * or by the tracer's end. */
        if (thread->state == ML_TRACED_RUNNING &&
            !ml_target_sleeps_deep(threads->pid, thread->id) && ml_threads_interrupt(thread)) {
            mend_call_of(thread);
        }
        if (thread->state == ML_TRACED_STOPPED) {
            (void)ptrace(PTRACE_DETACH, thread->id, NULL, (void *)(long)thread->signal);
        }
    }
    free(threads->list);
    ml_threads_init(threads, threads->pid);
}
