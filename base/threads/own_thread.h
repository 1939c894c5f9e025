/* Threads of our own. Room: base. Context: any thread; libc alone.
 *
 * One rule: no signal is delivered to them. Signals are for the thread that has the loop, whose
 * handlers and waits they would miss elsewhere. */
#ifndef MEMLOG_BASE_THREADS_OWN_THREAD_H
#define MEMLOG_BASE_THREADS_OWN_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef void *ml_own_thread_run(void *context);

/* Begin one with a stack of that size. `out_thread` is joined by the caller; NULL: nobody joins it.
 * False: there is none. */
bool ml_own_thread_begin(
    size_t stack_bytes, ml_own_thread_run *run, void *context, pthread_t *out_thread
);

#endif
