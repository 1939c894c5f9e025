/* A program that takes its own system calls, as Wine does for code of another system: while a byte
 * says so, each comes to its handler as a signal. It counts them, and knows how many there must be.
 * Told to end, it exits with 7 if they were as many; with 1 if not. */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SET_DISPATCH = 59,
    DISPATCH_ON = 1,
    ALLOW = 0,
    BLOCK = 1,
    TURNS = 2000000,
    BLOCK_BYTES = 100
};

static volatile char selector = ALLOW;
static volatile sig_atomic_t caught;
static volatile sig_atomic_t caught_others;

static void catch_call(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    selector = ALLOW;
    caught += info->si_syscall == SYS_getppid;
    caught_others += info->si_syscall != SYS_getppid;
}

static int is_told_to_end(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) != 0;
}

int main(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    long wanted = 0;
    action.sa_sigaction = catch_call;
    (void)sigaction(SIGSYS, &action, NULL);
    if (prctl(SET_DISPATCH, DISPATCH_ON, 0, 0, &selector) != 0) {
        (void)puts("none"); /* the kernel has no such thing */
        return 0;
    }
    (void)puts("ready");
    (void)fflush(stdout);
    while (!is_told_to_end()) {
        selector = BLOCK;
        for (volatile long turn = 0; turn < TURNS; turn++) {
        }
        (void)syscall(SYS_getppid);
        wanted++;
        free(malloc(BLOCK_BYTES));
    }
    return caught == wanted && caught_others == 0 ? 7 : 1;
}
