/* A fixed number of threads that share out a piece of work. Room: service. Context: made and called
 * by one thread, the caller, which is worker 0 itself.
 *
 * One rule: ml_workers_run returns when everything is done, and between two calls nobody but the
 * caller touches anything. So whatever the caller wrote before is seen by the workers, what they
 * wrote is seen behind it, and neither needs a lock.
 *
 * The threads are made at once and for good: inside the sandbox's filter there are no new ones, and
 * waiting for work is all that they ask of the kernel (futex). */
#ifndef MEMLOG_SERVICE_WORKERS_WORKERS_H
#define MEMLOG_SERVICE_WORKERS_WORKERS_H

#include <stdint.h>

enum {
    ML_WORKERS_MAX = 16,
    /* As many as are used of a larger machine: what one thread has to do at the end of each slice
     * (service/session/slice.c) leaves more of them nothing to win, and the program wants its
     * cores. */
    ML_WORKERS_DEFAULT_MAX = 4
};

struct ml_workers;

/* What is done for each item of a piece of work. `worker` is below ml_workers_count, and of no two
 * calls at the same time the same. */
typedef void ml_work(void *context, uint32_t item, unsigned worker);

/* The cores that this process may use, at most ML_WORKERS_DEFAULT_MAX. */
unsigned ml_workers_default(void);

/* `count` workers, 1 to ML_WORKERS_MAX; fewer where the system permits no more threads. The threads
 * have done everything that a thread does once when this returns. NULL when there is no memory. */
struct ml_workers *ml_workers_new(unsigned count);

/* Ends the threads. */
void ml_workers_free(struct ml_workers *take_workers);

/* With the caller; 1: there are no threads. NULL has 1. */
unsigned ml_workers_count(const struct ml_workers *workers);

/* Do `work` for each item of [0, items), in any order, on several cores if there are several. */
void ml_workers_run(struct ml_workers *workers, ml_work *work, void *context, uint32_t items);

#endif
