/* Threads that allocate while a timer of each sends a signal a thousand times a second, whose
 * handler runs on a small stack of the thread's own. Two of them leave each handler by siglongjmp,
 * from where they compute: never out of the allocator. */
#include "tests/oracle/steady/steady.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

enum { THREADS = 8, JUMPERS = 2, STACK_BYTES = 1 << 20, HANDLER_BYTES = 16384, LONGEST_MS = 10000 };

struct thread {
    unsigned char *stack;
    size_t stack_bytes;
    _Atomic uint64_t ticks;
    sigjmp_buf back;
    volatile sig_atomic_t may_jump;
};
static struct thread threads[THREADS];
static __thread struct thread *own;
static _Atomic uint32_t ended;

static void tick(int number, siginfo_t *info, void *context) {
    volatile unsigned char here[256];
    const int kept_errno = errno;
    (void)context;
    for (size_t i = 0; i < sizeof(here); i++) {
        here[i] = (unsigned char)i;
    }
    const size_t at = (size_t)((uintptr_t)here - (uintptr_t)own->stack);
    if (number != SIGRTMIN || info->si_code != SI_TIMER || at >= own->stack_bytes ||
        here[200] != 200) {
        steady_count(false, "a handler's stack", (long)at);
    }
    atomic_fetch_add(&own->ticks, 1);
    errno = kept_errno;
    if (own->may_jump != 0) {
        own->may_jump = 0;
        siglongjmp(own->back, 1);
    }
}

static void begin(struct thread *thread) {
    const size_t least = (size_t)getauxval(AT_MINSIGSTKSZ);
    own = thread;
    thread->stack_bytes = (least > 2048 ? least : 2048) + HANDLER_BYTES;
    thread->stack = calloc(1, thread->stack_bytes);
    const stack_t stack = {.ss_sp = thread->stack, .ss_size = thread->stack_bytes};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    const struct itimerspec interval = {
        .it_interval.tv_nsec = STEADY_NS_A_MS, .it_value.tv_nsec = STEADY_NS_A_MS};
    timer_t timer;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (sigaltstack(&stack, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &interval, NULL) != 0) {
        (void)fprintf(stderr, "no timer\n");
        _exit(99);
    }
}

/* Until the next tick takes it out; one that comes before it waits costs it one more. */
static void be_taken_out(struct thread *thread) {
    volatile uint64_t spun = 0;
    if (sigsetjmp(thread->back, 1) == 0) {
        thread->may_jump = 1;
        for (const uint64_t end_ns = steady_now_ns() + (uint64_t)LONGEST_MS * STEADY_NS_A_MS;
             steady_now_ns() < end_ns;) {
            spun = spun + 1; /* to gcc 16, an increment alone is no use */
        }
        thread->may_jump = 0;
        steady_count(false, "no tick came", LONGEST_MS);
    }
}

static void *run(void *argument) {
    struct thread *thread = argument;
    const bool jumps = thread < threads + JUMPERS;
    begin(thread);
    uint64_t turn = (uint64_t)(thread - threads);
    while (!steady_is_over()) {
        if (jumps) {
            be_taken_out(thread);
        }
        errno = 4711;
        steady_count(steady_blocks(turn += THREADS), "blocks", 0);
        steady_count(errno == 4711, "errno", errno);
    }
    stack_t now;
    sigset_t mask;
    (void)sigaltstack(NULL, &now);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    steady_count(
        now.ss_sp == thread->stack && now.ss_size == thread->stack_bytes && now.ss_flags == 0,
        "its signal stack",
        now.ss_flags
    );
    steady_count(sigismember(&mask, SIGRTMIN) == 0, "its signal mask", 0);
    steady_count(atomic_load(&thread->ticks) > 0, "no ticks", 0);
    (void)sigaddset(&mask, SIGRTMIN);
    (void)pthread_sigmask(SIG_BLOCK, &mask, NULL); /* its stack is not to be freed under it */
    atomic_fetch_add(&ended, 1);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    action.sa_sigaction = tick;
    (void)sigaction(SIGRTMIN, &action, NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        steady_thread(run, &threads[i]);
    }
    steady_wait();
    while (atomic_load(&ended) < THREADS) {
        steady_sleep_us(1000);
    }
    return steady_end();
}
