/* What a program can find out about itself, line by line, without what changes from run to run: run
 * bare and under memlog it must say the same (tests/e2e/self_checks_test.py). `seen again` is what
 * it execs in the end. The last line is its memory, for the test to compare with care. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNALS = 65, LOW_DESCRIPTORS = 60, SIZES = 12, BLOCKS = 3000 };

static void *volatile kept;

static void say_mask(const char *where) {
    sigset_t mask;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    printf("mask %s:", where);
    for (int number = 1; number < SIGNALS; number++) {
        if (sigismember(&mask, number) == 1) {
            printf(" %d", number);
        }
    }
    printf("\n");
}

static void say_signals(void) {
    sigset_t pending;
    printf("handlers:");
    for (int number = 1; number < SIGNALS; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL) {
            printf(" %d%s", number, action.sa_handler == SIG_IGN ? "i" : "h");
        }
    }
    (void)sigpending(&pending);
    printf("\npending: %d\n", sigisemptyset(&pending));
    stack_t stack;
    (void)sigaltstack(NULL, &stack);
    printf("altstack: %d\n", stack.ss_flags);
}

static void say_status(void) {
    static const char *const keys[] = {
        "Name:",
        "Umask:",
        "TracerPid:",
        "FDSize:",
        "Threads:",
        "SigQ",
        "SigPnd:",
        "ShdPnd:",
        "SigBlk:",
        "SigIgn:",
        "SigCgt:",
        "CapEff:",
        "CapPrm:",
        "NoNewPrivs:",
        "Seccomp:",
        "Cpus_allowed:"};
    FILE *file = fopen("/proc/self/status", "r");
    char line[512];
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            /* The table of descriptors grows with the highest, and who is queued changes. */
            if (strncmp(line, keys[i], strlen(keys[i])) == 0 && strncmp(line, "SigQ", 4) != 0 &&
                strncmp(line, "FDSize", 6) != 0) {
                printf("status %s", line);
            }
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static void say_limits(void) {
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit limit;
        if (getrlimit((unsigned)which, &limit) == 0) {
            printf("limit %d: %lx %lx\n", which, (long)limit.rlim_cur, (long)limit.rlim_max);
        }
    }
    struct itimerval timer;
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        (void)getitimer((__itimer_which_t)which, &timer);
        printf("timer %d: %ld\n", which, (long)timer.it_value.tv_sec + timer.it_value.tv_usec);
    }
    printf("nice %d, policy %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
    printf("dumpable %d, deathsig", prctl(PR_GET_DUMPABLE));
    int number = -1;
    (void)prctl(PR_GET_PDEATHSIG, &number);
    int subreaper = -1;
    (void)prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    printf(" %d, subreaper %d\n", number, subreaper);
    errno = 0;
    const pid_t child = waitpid(-1, NULL, WNOHANG);
    printf("children: %d %d\n", (int)child, errno);
}

static void say_descriptors(void) {
    printf("open:");
    for (int fd = 0; fd < LOW_DESCRIPTORS; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            printf(" %d", fd);
        }
    }
    int ends[2];
    int pair[2];
    printf("\nnew: %d", open("/dev/null", O_RDONLY));
    printf(" %d", dup(0));
    (void)!pipe(ends);
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    printf(" %d %d %d %d %d\n", ends[0], ends[1], pair[0], pair[1], epoll_create1(0));
    closefrom(3);
    printf("after closefrom: %d\n", open("/dev/null", O_RDONLY));
    errno = 0;
    const int answer = close(LOW_DESCRIPTORS);
    printf("closing none: %d %d\n", answer, errno);
    closefrom(3);
}

/* Every call that allocates, with an errno that must stay, or become what it says. */
static void say_errors(void) {
    void *block = NULL;
    errno = 77;
    kept = malloc(100);
    kept = realloc(kept, 100000);
    free(kept);
    kept = calloc(10, 10);
    free(kept);
    free(NULL);
    printf("errno after success: %d\n", errno);
    volatile size_t huge = PTRDIFF_MAX;
    errno = 0;
    printf("malloc too much: %d", malloc(huge) == NULL);
    printf(" %d\n", errno);
    errno = 0;
    printf("calloc too much: %d", calloc(huge, 4) == NULL);
    printf(" %d\n", errno);
    kept = malloc(10);
    errno = 0;
    printf("realloc too much: %d", realloc(kept, huge) == NULL);
    printf(" %d\n", errno);
    errno = 0;
    printf("reallocarray too much: %d", reallocarray(kept, huge, 4) == NULL);
    printf(" %d\n", errno);
    errno = 5;
    printf("posix_memalign of 3: %d", posix_memalign(&block, 3, 10));
    printf(" %d\n", errno);
    errno = 0;
    volatile size_t alignment = 3;
    block = aligned_alloc(alignment, 10);
    printf("aligned_alloc of 3: %d\n", errno);
    free(block);
    free(kept);
    errno = 0;
    kept = malloc(0);
    printf("malloc(0): %d %d\n", kept != NULL, errno);
    kept = realloc(kept, 0);
    printf("realloc to 0: %d\n", kept == NULL);
    for (size_t i = 0; i < SIZES; i++) {
        kept = malloc((size_t)7 << i);
        printf(
            "usable %zu: %zu, aligned %d\n",
            (size_t)7 << i,
            malloc_usable_size(kept),
            (int)((uintptr_t)kept % 16)
        );
        free(kept);
    }
}

static volatile int pipes_broken;

static void on_pipe(int number) {
    (void)number;
    pipes_broken++;
    kept = malloc(10); /* a handler that allocates, as it should not */
    free(kept);
    say_mask("in a handler");
}

static void say_broken_pipe(void) {
    int ends[2];
    struct sigaction before;
    const struct sigaction action = {.sa_handler = on_pipe, .sa_flags = SA_RESTART};
    (void)sigaction(SIGPIPE, &action, &before);
    (void)!pipe(ends);
    (void)close(ends[0]);
    errno = 0;
    const ssize_t count = write(ends[1], "x", 1);
    printf("broken pipe: %zd %d, signals %d\n", count, errno, pipes_broken);
    (void)close(ends[1]);
    (void)sigaction(SIGPIPE, &before, NULL);
}

static void *in_thread(void *unused) {
    (void)unused;
    kept = malloc(1000);
    free(kept);
    say_mask("in a thread");
    return NULL;
}

static void say_children(void) {
    pthread_t thread;
    sigset_t some;
    (void)sigemptyset(&some);
    (void)sigaddset(&some, SIGUSR1);
    (void)sigaddset(&some, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &some, NULL);
    if (pthread_create(&thread, NULL, in_thread, NULL) == 0) {
        (void)pthread_join(thread, NULL);
    }
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        kept = malloc(1000);
        say_mask("in a child");
        say_descriptors();
        (void)fflush(stdout);
        _exit(3);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    printf("child: %x\n", (unsigned)status);
    (void)pthread_sigmask(SIG_UNBLOCK, &some, NULL);
}

static void say_environment(char **argv) {
    for (char **at = environ; *at != NULL; at++) {
        printf("environ %s\n", *at);
    }
    printf("LD_PRELOAD %s\n", getenv("LD_PRELOAD") != NULL ? getenv("LD_PRELOAD") : "none");
    printf("called %s %s\n", argv[0], argv[1] != NULL ? argv[1] : "");
    /* Memory as it stands: the environment is no longer than it was given. */
    size_t bytes = 0;
    for (char **at = environ; *at != NULL; at++) {
        bytes += strlen(*at) + 1;
    }
    printf("environment: %zu bytes\n", bytes);
}

static long resident_kib(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        (void)sscanf(line, "VmRSS: %ld", &kib);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib;
}

int main(int argc, char **argv) {
    say_mask("at first");
    say_signals();
    say_status();
    say_limits();
    say_environment(argv);
    say_errors();
    say_broken_pipe();
    say_children();
    say_descriptors();
    for (int i = 0; i < BLOCKS; i++) {
        kept = malloc((size_t)i);
        free(kept);
    }
    printf("KiB %ld\n", resident_kib());
    (void)fflush(stdout);
    if (argc == 1) {
        (void)execl(argv[0], argv[0], "again", (char *)NULL);
    }
    return 4;
}
