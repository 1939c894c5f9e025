/* Threads as the program starts them: whose stack is whose. Room: client. Context: any.
 *
 * One rule: the thread is started by the real function with the program's own start routine, and
 * its stack is found without a call into it: glibc keeps a thread's descriptor, whose address the
 * program gets, on the stack's last page. */
#include <errno.h>
#include <pthread.h>

#include "client/recording/mapping.h"
#include "client/startup/libc.h"
#include "client/state/visible.h"
#include "client/symbols/symbols.h"
#include "client/unwind/foreign.h"

enum { PAGE_BYTES = 4096 };

/* Before glibc 2.34 it may come with a library that is loaded later. */
static void find_late(void) {
    const struct ml_loaded_symbol found = ml_symbol_of_library("libpthread.so.0", "pthread_create");
    ml_libc.pthread_create =
        (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))(uintptr_t
        )found.address;
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

ML_VISIBLE ML_BETWEEN int pthread_create(
    pthread_t *out_thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument
) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    ML_LIBC_READY(pthread_create);
    if (ml_libc.pthread_create == NULL) {
        find_late();
    }
    if (ml_libc.pthread_create == NULL) {
        return EAGAIN;
    }
    const uint64_t bytes = stack_bytes(attributes);
    const int result = ml_libc.pthread_create(out_thread, attributes, start, argument);
    const uint64_t end = result == 0 ? stack_end(out_thread) : 0;
    if (bytes > 0 && bytes < end) {
        ml_mapping_stack(
            &entry, (const void *)(uintptr_t)(end - bytes), bytes, (const void *)(uintptr_t)start
        );
    }
    return result;
}
