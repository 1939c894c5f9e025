/* A program of two threads, one of which waits for the child of its vfork as long as it runs: the
 * kernel lets nobody stop it. The other one works, and ends the program when told: with 7. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { BLOCK_BYTES = 100 };

static atomic_int child;

static void *wait_for_child(void *argument) {
    (void)argument;
    if (vfork() == 0) {
        atomic_store(&child, (int)getpid());
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            (void)poll(NULL, 0, -1);
        }
    }
    return NULL;
}

static int is_told_to_end(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 1) != 0;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_child, NULL) != 0) {
        return 1;
    }
    while (atomic_load(&child) == 0) {
    }
    (void)puts("ready");
    (void)fflush(stdout);
    while (!is_told_to_end()) {
        free(malloc(BLOCK_BYTES));
    }
    (void)kill(atomic_load(&child), SIGKILL);
    (void)pthread_join(thread, NULL);
    return 7;
}
