/* What libc tells a client: ends of threads, and forks. */
#include <limits.h>
#include <pthread.h>

#include "client/recording/lifecycle.h"
#include "client/recording/notes.h"
#include "client/symbols/symbols.h"

#if ML_ATTACHED

/* A client in a running process asks libc for nothing: whose locks are held is not known. Lanes of
 * ended threads are found by ml_thread_table_sweep, forks by the entry of _Fork or by the child. */
void ml_lifecycle_watch_exit(const void *value) {
    (void)value;
}

void ml_lifecycle_ask_libc(void) {
}

void ml_lifecycle_threads_came(void) {
}

#else

/* Bound to their first version, which libc.so.6 keeps: many containers lack the newest. An older
 * glibc has them in libpthread.so.0. A program without that library has no threads, until one comes
 * that brings it. */
__asm__(".symver pthread_key_create, pthread_key_create@GLIBC_2.2.5");
__asm__(".symver pthread_setspecific, pthread_setspecific@GLIBC_2.2.5");
#    pragma weak pthread_key_create
#    pragma weak pthread_setspecific

typedef int key_create_fn(pthread_key_t *, void (*)(void *));
typedef int setspecific_fn(pthread_key_t, const void *);

/* Of keys below it glibc has a thread's values in the thread's descriptor; of others it allocates
 * memory for them. */
enum { KEYS_WITHOUT_MEMORY = 32 };

static pthread_key_t exit_key;
static setspecific_fn *_Atomic set_value; /* NULL: there is no key */

/* Have thread_exits called at this thread's end. */
void ml_lifecycle_watch_exit(const void *value) {
    setspecific_fn *const set = atomic_load_explicit(&set_value, memory_order_acquire);
    if (set != NULL) {
        (void)set(exit_key, value);
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

static void make_key(key_create_fn *create, setspecific_fn *set) {
    if (create != NULL && set != NULL && create(&exit_key, thread_exits) == 0 &&
        exit_key < KEYS_WITHOUT_MEMORY) {
        atomic_store_explicit(&set_value, set, memory_order_release);
    }
}

void ml_lifecycle_threads_came(void) {
    static atomic_bool asked;
    if (!ml_process.connected || atomic_load(&set_value) != NULL || atomic_exchange(&asked, true)) {
        return;
    }
    static const char file[] = "libpthread.so.0";
    key_create_fn *create = NULL;
    setspecific_fn *set = NULL;
    *(void **)&create = ml_symbol_of_library(file, "pthread_key_create").address;
    *(void **)&set = ml_symbol_of_library(file, "pthread_setspecific").address;
    make_key(create, set);
}

void ml_lifecycle_ask_libc(void) {
    make_key(pthread_key_create, pthread_setspecific);
    (void)pthread_atfork(
        ml_lifecycle_before_fork,
        ml_lifecycle_after_fork_in_parent,
        ml_lifecycle_after_fork_in_child
    );
}

#endif
