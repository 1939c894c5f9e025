/* Threads as the program starts them: whose stack is whose. Room: client. Context: any.
 *
 * One rule: the thread is started by the real function with the program's own start routine, and
 * its stack is found without a call into it: glibc keeps a thread's descriptor, whose address the
 * program gets, on the stack's last page. */
#include <errno.h>
#include <pthread.h>

#include "client/recording/lifecycle.h"
#include "client/recording/mapping.h"
#include "client/startup/libc.h"
#include "client/state/visible.h"
#include "client/symbols/symbols.h"
#include "client/unwind/foreign.h"

enum { PAGE_BYTES = 4096 };

/* As C11 has it. <threads.h> is younger than the oldest glibc that memlog is built with. */
int thrd_create(pthread_t *out_thread, int (*start)(void *), void *argument);
enum { THREAD_ERROR = 2 }; /* thrd_error */

/* Before glibc 2.34 they may come with a library that is loaded later. */
static uintptr_t find_late(const char *name) {
    return (uintptr_t)ml_symbol_of_library("libpthread.so.0", name).address;
}

static uint64_t stack_bytes(const pthread_attr_t *attributes) {
    size_t bytes = 0;
    if (attributes == NULL) {
        return ml_libc.stack_bytes;
    }
    const bool is_known = ml_libc.pthread_attr_getstacksize != NULL &&
                          ml_libc.pthread_attr_getstacksize(attributes, &bytes) == 0;
    return is_known ? bytes & ~(uint64_t)(PAGE_BYTES - 1) : 0;
}

/* 0: not known. The thread runs already, and may have freed the memory that has its name. */
static uint64_t stack_end(const pthread_t *thread) {
    struct ml_foreign foreign = {0};
    if (!ml_foreign_readable(&foreign, thread, sizeof(*thread))) {
        return 0;
    }
    return (*(const volatile pthread_t *)thread | (PAGE_BYTES - 1)) + 1;
}

/* The thread was started. */
static void note_stack(
    const struct ml_unwind_entry *entry,
    const pthread_t *thread,
    const pthread_attr_t *attributes,
    uintptr_t start
) {
    const uint64_t bytes = stack_bytes(attributes);
    const uint64_t end = stack_end(thread);
    if (bytes > 0 && bytes < end) {
        ml_mapping_stack(entry, (const void *)(uintptr_t)(end - bytes), bytes, (const void *)start);
    }
}

ML_VISIBLE ML_BETWEEN int pthread_create(
    pthread_t *out_thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument
) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    ML_LIBC_READY(pthread_create);
    if (ml_libc.pthread_create == NULL) {
        ml_libc.pthread_create =
            (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
            )find_late("pthread_create");
    }
    if (ml_libc.pthread_create == NULL) {
        return EAGAIN;
    }
    ml_lifecycle_threads_came();
    ml_lifecycle_be_somebody();
    const int result = ml_libc.pthread_create(out_thread, attributes, start, argument);
    if (result == 0) {
        note_stack(&entry, out_thread, attributes, (uintptr_t)start);
    }
    return result;
}

/* It does not come past our pthread_create: glibc calls its own. */
ML_VISIBLE ML_BETWEEN int thrd_create(pthread_t *out_thread, int (*start)(void *), void *argument) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    ML_LIBC_READY(thrd_create);
    if (ml_libc.thrd_create == NULL) {
        ml_libc.thrd_create =
            (int (*)(pthread_t *, int (*)(void *), void *))find_late("thrd_create");
    }
    if (ml_libc.thrd_create == NULL) {
        return THREAD_ERROR; /* before glibc 2.28 there is none */
    }
    ml_lifecycle_threads_came();
    ml_lifecycle_be_somebody();
    const int result = ml_libc.thrd_create(out_thread, start, argument);
    if (result == 0) {
        note_stack(&entry, out_thread, NULL, (uintptr_t)start);
    }
    return result;
}
