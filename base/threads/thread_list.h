/* All threads of another process, while they come and go, for who seizes them. Room: base. Context:
 * any; reads /proc only, and allocates nothing.
 *
 * One rule: nobody is missed. The kernel's list of threads (/proc/PID/task) is old before it is
 * read: a thread that is not held yet may begin another one and end, and the list breaks off,
 * without a word, at a thread that ends meanwhile. So passes are made over it until one finds just
 * those that are held, as many as the kernel counts. */
#ifndef MEMLOG_BASE_THREADS_THREAD_LIST_H
#define MEMLOG_BASE_THREADS_THREAD_LIST_H

#include <sys/types.h>

enum ml_thread_taken {
    ML_THREAD_HAD,      /* since an earlier pass, or it need not be held */
    ML_THREAD_NEW,      /* since this one */
    ML_THREAD_ENDED,    /* after it was listed */
    ML_THREAD_FORBIDDEN /* the passes are over */
};

/* What the caller does with each thread of the list. */
typedef enum ml_thread_taken ml_thread_take(void *context, pid_t id);

enum ml_thread_pass {
    ML_THREAD_PASS_SETTLED, /* there are no others than those that the caller had */
    ML_THREAD_PASS_UNSETTLED,
    ML_THREAD_PASS_FORBIDDEN
};

/* One pass. A process that is gone has no threads, and is settled. */
enum ml_thread_pass ml_thread_list_pass(pid_t pid, ml_thread_take *take, void *context);

/* What it means that the kernel did not let a thread be seized; `error`: its errno. The first
 * thread, when it has ended before others, stays in the list and need not be held. */
enum ml_thread_taken ml_thread_not_seized(pid_t pid, pid_t id, int error);

#endif
