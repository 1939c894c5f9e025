#include "host/process/closer.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 10 };

/* Of the process, not of one engine: the threads outlive engines. */
static atomic_uint threads_count;

static void *close_one(void *context) {
    (void)close((int)(intptr_t)context);
    (void)atomic_fetch_sub(&threads_count, 1);
    return NULL;
}

void ml_closer_close(int take_fd) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    if (atomic_fetch_add(&threads_count, 1) >= ML_CLOSER_THREADS_MAX ||
        pthread_attr_init(&attributes) != 0) {
        (void)atomic_fetch_sub(&threads_count, 1);
        return;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)sigfillset(&all); /* they are for other threads */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, &attributes, close_one, (void *)(intptr_t)take_fd) != 0) {
        (void)atomic_fetch_sub(&threads_count, 1);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
}
