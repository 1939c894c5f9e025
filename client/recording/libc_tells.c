/* What libc tells a client: ends of threads, and forks. */
#include <limits.h>
#include <pthread.h>

#include "client/recording/lifecycle.h"
#include "client/recording/notes.h"

#if ML_ATTACHED

/* A client in a running process asks libc for nothing: whose locks are held is not known. Lanes of
 * ended threads are found by ml_thread_table_sweep, forks by the entry of _Fork or by the child. */
void ml_lifecycle_watch_exit(const void *value) {
    (void)value;
}

void ml_lifecycle_ask_libc(void) {
}

#else

/* Bound to their first version, which libc.so.6 keeps: many containers lack the newest. An older
 * glibc has them in libpthread.so.0. A program without that library has no threads. */
__asm__(".symver pthread_key_create, pthread_key_create@GLIBC_2.2.5");
__asm__(".symver pthread_setspecific, pthread_setspecific@GLIBC_2.2.5");
#    pragma weak pthread_key_create
#    pragma weak pthread_setspecific

static pthread_key_t exit_key;

/* Have thread_exits called at this thread's end. */
void ml_lifecycle_watch_exit(const void *value) {
    if (pthread_key_create != NULL && pthread_setspecific != NULL) {
        (void)pthread_setspecific(exit_key, value);
    }
}

/* Destructors run in rounds, and those of other keys may allocate in each. The lanes are given back
 * in the last round. What the thread frees later (libc's and the allocator's caches) takes a lane
 * for each event. */
static void thread_exits(void *value) {
    struct ml_thread *thread = ml_this_thread();
    if (thread->exit_rounds == ML_THREAD_GONE) {
        return;
    }
    if (++thread->exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        ml_lifecycle_watch_exit(value);
        return;
    }
    thread->exit_rounds = ML_THREAD_GONE;
    ml_notes_give(thread);
    thread->gate = UINT64_MAX;
    thread->sampling_gate = UINT64_MAX;
    if (thread->generation == ml_process.generation && ml_process_state() != ML_GATE_FRESH) {
        ml_lifecycle_give_lanes(thread);
    }
}

void ml_lifecycle_ask_libc(void) {
    if (pthread_key_create != NULL) {
        (void)pthread_key_create(&exit_key, thread_exits);
    }
    (void)pthread_atfork(
        ml_lifecycle_before_fork,
        ml_lifecycle_after_fork_in_parent,
        ml_lifecycle_after_fork_in_child
    );
}

#endif
