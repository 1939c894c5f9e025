#include "base/threads/own_thread.h"

#include <signal.h>

bool ml_own_thread_begin(
    size_t stack_bytes, ml_own_thread_run *run, void *context, pthread_t *out_thread
) {
    pthread_attr_t attributes;
    pthread_t unjoined;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    if (out_thread == NULL) {
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        out_thread = &unjoined;
    }
    /* A thread begins with the mask of who makes it: there is no moment in which it hears one. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool is_begun = pthread_create(out_thread, &attributes, run, context) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return is_begun;
}
