#include "host/process/closer.h"

#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "base/threads/own_thread.h"

enum { STACK_BYTES = 64 << 10 };

/* Of the process, not of one engine: the threads outlive engines. */
static atomic_uint threads_count;

static void *close_one(void *context) {
    (void)close((int)(intptr_t)context);
    (void)atomic_fetch_sub(&threads_count, 1);
    return NULL;
}

void ml_closer_close(int take_fd) {
    if (atomic_fetch_add(&threads_count, 1) >= ML_CLOSER_THREADS_MAX ||
        !ml_own_thread_begin(STACK_BYTES, close_one, (void *)(intptr_t)take_fd, NULL)) {
        (void)atomic_fetch_sub(&threads_count, 1);
    }
}
