#include "host/memory/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/seccomp/restart.h"
#include "base/threads/thread_list.h"
#include "host/memory/status.h"

/* Threads stop within 1 ms, 80 ms where many are busy. One that sleeps in the kernel and takes no
 * signal (a disk that hangs, a vfork whose child is at work) may take any time. */
enum { PATIENCE_MS = 250, LOOK_US = 100 };

enum { EVENT_SHIFT = 8, SIGNAL_MASK = 0x7f };

enum { NS_PER_US = 1000, US_PER_MS = 1000 };

static uint64_t now_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * US_PER_MS * US_PER_MS + (uint64_t)now.tv_nsec / NS_PER_US;
}

static bool is_known(const struct ml_memory_hold *hold, pid_t tid) {
    for (uint32_t i = 0; i < hold->count; i++) {
        if (hold->threads[i].tid == tid) {
            return true;
        }
    }
    return false;
}

/* A tracer that is there already is named. */
static void say_who_traces(pid_t tid, char why[ML_HOLD_WHY_BYTES]) {
    char path[64];
    char name[32] = "?";
    const struct ml_memory_status status = ml_memory_status_read(tid);
    if (status.tracer_pid == 0) {
        (void)snprintf(why, ML_HOLD_WHY_BYTES, "the kernel does not let memlog stop it");
        return;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", status.tracer_pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, name, sizeof(name) - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (count > 0) {
        name[count] = '\0';
        name[strcspn(name, "\n")] = '\0';
    }
    (void)snprintf(why, ML_HOLD_WHY_BYTES, "%s (%d) traces it", name, status.tracer_pid);
}

/* What a pass over the threads needs. */
struct holding {
    struct ml_memory_hold *hold;
    pid_t pid;
    char *why;
};

static enum ml_thread_taken seize(void *context, pid_t tid) {
    const struct holding *holding = context;
    struct ml_memory_hold *hold = holding->hold;
    if (is_known(hold, tid)) {
        return ML_THREAD_HAD;
    }
    if (hold->count == ML_HOLD_THREADS_MAX) {
        (void)snprintf(
            holding->why, ML_HOLD_WHY_BYTES, "it has more than %d threads", ML_HOLD_THREADS_MAX
        );
        return ML_THREAD_FORBIDDEN;
    }
    if (!ml_seccomp_filters_are_readable() && ml_memory_status_read(tid).seccomp_mode != 0) {
        (void)snprintf(
            holding->why,
            ML_HOLD_WHY_BYTES,
            "its seccomp filter may kill it, and root alone can read that"
        );
        return ML_THREAD_FORBIDDEN;
    }
    /* Without PTRACE_O_EXITKILL: if memlog is killed now, the process runs on. */
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        const enum ml_thread_taken taken = ml_thread_not_seized(holding->pid, tid, errno);
        if (taken == ML_THREAD_FORBIDDEN) {
            say_who_traces(tid, holding->why);
        }
        return taken;
    }
    hold->threads[hold->count++] = (struct ml_held_thread){.tid = tid};
    (void)ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
    return ML_THREAD_NEW;
}

/* Whether it needs no more waiting. The stop is not taken from the kernel: if this process is
 * killed now, the signal that it may be about is still delivered. */
static bool look(struct ml_held_thread *thread, pid_t pid) {
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WNOHANG | WNOWAIT | __WALL) != 0) {
        if (thread->tid != pid) { /* it has ended; an exec waits for that to be taken */
            (void)waitid(P_PID, (id_t)thread->tid, &info, WEXITED | WNOHANG | __WALL);
        }
        thread->tid = 0;
        return true;
    }
    if (info.si_pid == 0) {
        return false;
    }
    thread->is_stopped = true;
    ml_seccomp_mend_wait(thread->tid);
    thread->signal =
        info.si_status >> EVENT_SHIFT == PTRACE_EVENT_STOP ? 0 : info.si_status & SIGNAL_MASK;
    return true;
}

static bool wait_for_all(
    struct ml_memory_hold *hold, pid_t pid, uint64_t until_us, char why[ML_HOLD_WHY_BYTES]
) {
    const struct timespec pause = {.tv_nsec = LOOK_US * NS_PER_US};
    for (uint32_t i = 0; i < hold->count; i++) {
        struct ml_held_thread *thread = &hold->threads[i];
        while (thread->tid != 0 && !thread->is_stopped && !look(thread, pid)) {
            if (now_us() > until_us) {
                (void)snprintf(
                    why,
                    ML_HOLD_WHY_BYTES,
                    "its thread %d did not stop within %d ms",
                    (int)thread->tid,
                    PATIENCE_MS
                );
                return false;
            }
            (void)nanosleep(&pause, NULL);
        }
    }
    return true;
}

bool ml_memory_hold_begin(struct ml_memory_hold *hold, pid_t pid, char out_why[ML_HOLD_WHY_BYTES]) {
    const uint64_t until_us = now_us() + (uint64_t)PATIENCE_MS * US_PER_MS;
    struct holding holding = {.hold = hold, .pid = pid, .why = out_why};
    enum ml_thread_pass pass = ML_THREAD_PASS_UNSETTLED;
    hold->count = 0;
    (void)snprintf(out_why, ML_HOLD_WHY_BYTES, "it has ended");
    while (pass == ML_THREAD_PASS_UNSETTLED) {
        pass = ml_thread_list_pass(pid, seize, &holding);
        if (pass == ML_THREAD_PASS_FORBIDDEN || !wait_for_all(hold, pid, until_us, out_why)) {
            return false;
        }
        if (pass == ML_THREAD_PASS_UNSETTLED && now_us() > until_us) {
            (void)snprintf(
                out_why, ML_HOLD_WHY_BYTES, "its threads came and went for %d ms", PATIENCE_MS
            );
            return false;
        }
    }
    if (hold->count == 0) {
        return false;
    }
    out_why[0] = '\0';
    return true;
}

void ml_memory_hold_end(struct ml_memory_hold *hold) {
    for (uint32_t i = 0; i < hold->count; i++) {
        const struct ml_held_thread *thread = &hold->threads[i];
        if (thread->is_stopped) {
            (void)ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->signal);
        }
    }
    hold->count = 0;
}
