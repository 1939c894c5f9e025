/* The threads of another process, stopped and let go again by ptrace. Room: tracer. Context: one
 * thread, the one that seizes them; the kernel lets all go when it dies.
 *
 * One rule: the process sees nothing of it. A system call that a stop has interrupted is made
 * again, a signal that came first is handed on, a process that was stopped by a signal stays so. */
#ifndef MEMLOG_TRACER_PROCESS_THREADS_H
#define MEMLOG_TRACER_PROCESS_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error_message.h"

enum { ML_THREADS_TRACED_MAX = 32768, ML_THREADS_WAIT_MS = 5000 };

enum ml_traced_state { ML_TRACED_RUNNING = 0, ML_TRACED_STOPPED, ML_TRACED_GONE };

struct ml_traced {
    pid_t id;
    enum ml_traced_state state;
    int signal; /* to be delivered when it goes on; 0: none */
};

struct ml_threads {
    pid_t pid;
    struct ml_traced *list;
    size_t count, room;
    pid_t forbidden;   /* the thread that may not be traced; 0: all may */
    uint64_t since_ns; /* when the stop of all of them began; of the monotonic clock */
    uint64_t held_ns;  /* the longest stop before that, when one was missing */
};

void ml_threads_init(struct ml_threads *threads, pid_t pid);

/* Seize and stop one thread of the process. False, with an error message: it is gone, or may not be
 * traced. */
bool ml_threads_stop_one(struct ml_threads *threads, pid_t id, struct ml_error_message *error);

/* Seize and stop all, those that begin meanwhile too. False, with an error message: none is stopped
 * any more. */
bool ml_threads_stop_all(struct ml_threads *threads, struct ml_error_message *error);

/* Let all go, and forget them. */
void ml_threads_let_go(struct ml_threads *threads);

/* Wait until that thread stops; the wait status is in *out_status. False: it is gone, or does not
 * stop within ML_THREADS_WAIT_MS. */
bool ml_threads_wait(struct ml_traced *thread, int *out_status);

/* Stop it again, as a seized thread is stopped at first. False: it is gone. */
bool ml_threads_interrupt(struct ml_traced *thread);

/* Let a stopped thread make its interrupted system call again, where the kernel would tell the
 * program that a signal came. */
void ml_threads_mend_call(struct user_regs_struct *registers);

/* Whether the program has told the kernel to hand a stopped thread's system calls to a signal
 * handler of its own (PR_SET_SYSCALL_USER_DISPATCH), but those of a part of its code. Kernels
 * before 6.4 do not tell. */
bool ml_threads_dispatch(const struct ml_traced *thread);

/* The ids of all threads there are now; at most `most`, returns how many. */
size_t ml_threads_list(pid_t pid, pid_t *out_ids, size_t most);

#endif
