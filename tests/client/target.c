/* The program that client tests run under the preload: one behaviour for each name. It prints what
 * the test wants to compare and is exact about what it allocates: sizes that nothing else has. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 20000, SLOTS = 64 };

static void *volatile sink;
static _Atomic(void *) shared[SLOTS];

static int basic(void) {
    for (int i = 0; i < 1000; i++) {
        sink = malloc(77777);
        free(sink);
    }
    sink = malloc(88888);
    sink = realloc(sink, 99999);
    void *const kept = sink;
    if (realloc(kept, (size_t)-1 / 4) != NULL || errno != ENOMEM) {
        return 3;
    }
    sink = calloc(3, 31111);
    sink = aligned_alloc(4096, 4096 * 5);
    void *aligned = NULL;
    const int result = posix_memalign(&aligned, 64, 11111);
    sink = aligned;
    return result;
}

static void *swap_blocks(void *argument) {
    unsigned random = (unsigned)(size_t)argument * 2654435761u + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245u + 12345u;
        void *block = malloc(16 + (random >> 16) % 64);
        free(atomic_exchange(&shared[(random >> 8) % SLOTS], block));
    }
    return NULL;
}

static int threads(void) {
    pthread_t ids[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_create(&ids[i], NULL, swap_blocks, (void *)i);
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(ids[i], NULL);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        free(shared[i]);
    }
    return 0;
}

static void *allocate_once(void *argument) {
    free(malloc(1234));
    return argument;
}

static int many_threads(void) {
    for (int i = 0; i < 1000; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, allocate_once, NULL) != 0 || pthread_join(id, NULL) != 0) {
            return 1;
        }
    }
    return 0;
}

static int forks(void) {
    sink = malloc(55555);
    const pid_t child = fork();
    if (child == 0) {
        sink = malloc(44444);
        _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    sink = malloc(33333);
    return status;
}

static int vforks(void) {
    const pid_t child = vfork();
    if (child == 0) {
        free(malloc(22222));
        (void)execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return status;
}

static int raw_exec(void) {
    sink = malloc(66666);
    char *const arguments[] = {"/bin/echo", "hello", NULL};
    char *const nothing[] = {NULL};
    (void)execve("/bin/echo", arguments, nothing);
    return 1;
}

static int environment(void) {
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strstr(*entry, "libmemlog") != NULL || strncmp(*entry, "MEMLOG_SOCKET", 13) == 0) {
            return 1;
        }
    }
    char bytes[65536];
    const int fd = open("/proc/self/environ", O_RDONLY);
    const ssize_t got = read(fd, bytes, sizeof(bytes));
    return fd != 3 || got < 0 || memmem(bytes, (size_t)got, "MEMLOG_SOCKET", 13) != NULL ? 2 : 0;
}

static int descriptors(void) {
    for (int fd = 3; fd < 1024; fd++) {
        if (close(fd) == 0) {
            return 1;
        }
    }
    (void)close_range(3, ~0u, 0);
    const int mine = dup2(1, 1000);
    for (int fd = 900; fd < 1024; fd++) {
        if (dup2(2, fd) != fd) {
            return 2;
        }
    }
    struct stat about;
    struct stat error;
    (void)fstat(2, &error);
    for (int i = 0; i < 10000; i++) {
        free(malloc(100));
    }
    for (int fd = 900; fd < 1024; fd++) {
        if (fstat(fd, &about) != 0 || about.st_ino != error.st_ino) {
            return 3;
        }
    }
    return mine == 1000 ? 0 : 4;
}

static sigjmp_buf back;
static volatile int handled;

static void on_signal(int number) {
    handled++;
    free(malloc(555));
    if (handled % 4 == 0) {
        siglongjmp(back, number);
    }
}

/* Handlers that allocate, and leave hooks by siglongjmp: free() of unmapped-size blocks keeps glibc
 * itself out of trouble by being interrupted only around getpid. */
static int signals(void) {
    (void)signal(SIGUSR1, on_signal);
    for (int i = 0; i < 1000; i++) {
        if (sigsetjmp(back, 1) == 0) {
            (void)raise(SIGUSR1);
        }
        free(malloc(444));
    }
    return handled == 1000 ? 0 : 1;
}

static int preserves_errno(void) {
    for (int i = 0; i < 100000; i++) {
        errno = 1000 + i % 7;
        void *block = malloc(24);
        if (errno != 1000 + i % 7) {
            return 1;
        }
        free(block);
        if (errno != 1000 + i % 7) {
            return 2;
        }
    }
    return 0;
}

static int flood(void) {
    for (int i = 0; i < 200000; i++) {
        free(malloc(24));
    }
    return 0;
}

/* ---- profiles: tests/client/capture.h, signals ---- */

static void ask_for(int wish) {
    sigset_t answers;
    int number = 0;
    (void)sigemptyset(&answers);
    (void)sigaddset(&answers, SIGUSR1);
    (void)sigaddset(&answers, SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &answers, NULL);
    (void)kill(getppid(), wish);
    (void)sigwait(&answers, &number);
}

static void *block_of_profile(size_t size) {
    sink = malloc(size);
    return sink;
}

static int profiles(void) {
    void *const first = block_of_profile(71111);
    void *second = block_of_profile(71112);
    ask_for(SIGUSR1);
    free(first);
    second = realloc(second, 72111);
    sink = block_of_profile(72222);
    ask_for(SIGUSR2);
    sink = block_of_profile(74444);
    free(second);
    ask_for(SIGUSR1);
    sink = block_of_profile(75555);
    return 0;
}

enum { PROFILES = 520, PROFILE_THREADS = 4 };
static atomic_bool enough, pause_now;
static pthread_barrier_t paused;

static void *swap_on(void *argument) {
    unsigned random = (unsigned)(size_t)argument * 2654435761u + 1;
    for (unsigned i = 0; !atomic_load(&enough); i++) {
        random = random * 1103515245u + 12345u;
        free(atomic_exchange(&shared[(random >> 8) % SLOTS], malloc(16 + (random >> 16) % 64)));
        if (i % 32 == 0) {
            (void)usleep(10); /* or there are more events than a test can look at */
        }
        if (atomic_load(&pause_now)) {
            (void)pthread_barrier_wait(&paused);
            (void)pthread_barrier_wait(&paused);
        }
    }
    return NULL;
}

/* A stack that appears in two profiles, with twice as many between them as there are tags. */
static __attribute__((noinline)) void seldom(void) {
    free(block_of_profile(73334));
}

/* More profiles than there are tags. The odd ones begin under threads that hand blocks across, and
 * end while nobody is at work: what they leave in staging can be read then. */
static int many_profiles(void) {
    pthread_t ids[PROFILE_THREADS];
    sigset_t answers;
    (void)sigemptyset(&answers);
    (void)sigaddset(&answers, SIGUSR1);
    (void)pthread_sigmask(SIG_BLOCK, &answers, NULL);
    (void)pthread_barrier_init(&paused, NULL, PROFILE_THREADS + 1);
    for (size_t i = 0; i < PROFILE_THREADS; i++) {
        (void)pthread_create(&ids[i], NULL, swap_on, (void *)i);
    }
    for (int i = 0; i < PROFILES; i += 2) {
        ask_for(SIGUSR1);
        free(block_of_profile(73333));
        if (i % 510 == 0) {
            seldom();
        }
        (void)usleep(500);
        atomic_store(&pause_now, true);
        (void)pthread_barrier_wait(&paused);
        ask_for(SIGUSR1);
        atomic_store(&pause_now, false);
        atomic_store(&enough, i + 2 >= PROFILES);
        (void)pthread_barrier_wait(&paused);
    }
    for (size_t i = 0; i < PROFILE_THREADS; i++) {
        (void)pthread_join(ids[i], NULL);
    }
    return 0;
}

/* A child of a process in a later profile begins with its own first. */
static int profile_forks(void) {
    ask_for(SIGUSR1);
    const pid_t child = fork();
    if (child == 0) {
        sink = block_of_profile(77777);
        _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return status;
}

static void *flood_thread(void *unused) {
    (void)unused;
    for (int i = 0; i < 50000; i++) {
        free(malloc(24));
    }
    return NULL;
}

/* Each thread finds the pipe full. */
static int flood_threads(void) {
    pthread_t threads[16];
    for (size_t i = 0; i < 16; i++) {
        if (pthread_create(&threads[i], NULL, flood_thread, NULL) != 0) {
            return 1;
        }
    }
    for (size_t i = 0; i < 16; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return 0;
}

static void *volatile result_of_deep;

static __attribute__((noinline)) void deep(int depth, size_t size) {
    if (depth == 0) {
        result_of_deep = malloc(size);
    } else {
        deep(depth - 1, size);
    }
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

/* A child that stops, goes on and ends, waited for in every way that tells of it: one of them is
 * its end. A block of 321 bytes stands for each other news. */
static int stops(void) {
    siginfo_t info = {0};
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        sink = malloc(55);
        (void)raise(SIGSTOP);
        (void)raise(SIGSTOP);
        sink = malloc(66);
        (void)raise(SIGSTOP);
        _exit(0);
    }
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WSTOPPED) != 0 || info.si_code != CLD_STOPPED) {
        return 1;
    }
    sink = malloc(321);
    (void)kill(child, SIGCONT);
    if (waitid(P_ALL, 0, &info, WEXITED | WCONTINUED) != 0 || info.si_code != CLD_CONTINUED) {
        return 2;
    }
    sink = malloc(321);
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status)) {
        return 3;
    }
    sink = malloc(321);
    (void)kill(child, SIGCONT);
    if (wait4(-1, &status, WCONTINUED, NULL) != child || !WIFCONTINUED(status)) {
        return 4;
    }
    sink = malloc(321);
    if (waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOWAIT) != 0 || info.si_code != CLD_STOPPED) {
        return 5;
    }
    sink = malloc(321);
    (void)kill(child, SIGKILL);
    return waitid(P_PID, (id_t)child, NULL, WEXITED) == 0 ? 0 : 6;
}

/* New paths while everything is dropped. */
static int flood_paths(void) {
    static volatile size_t sizes[] = {24, 7777};
    for (int depth = 0; depth <= 40; depth++) {
        for (int i = 0; i < 5000; i++) {
            free(malloc(24));
        }
        deep(depth, sizes[depth / 40]); /* one place: the compiler makes two of a condition */
    }
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} behaviours[] = {
    {"basic", basic},
    {"threads", threads},
    {"many_threads", many_threads},
    {"forks", forks},
    {"vforks", vforks},
    {"raw_exec", raw_exec},
    {"environment", environment},
    {"descriptors", descriptors},
    {"signals", signals},
    {"stops", stops},
    {"errno", preserves_errno},
    {"flood", flood},
    {"flood_threads", flood_threads},
    {"flood_paths", flood_paths},
    {"profiles", profiles},
    {"many_profiles", many_profiles},
    {"profile_forks", profile_forks},
};

int main(int count, char **arguments) {
    for (size_t i = 0; count == 2 && i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
        if (strcmp(behaviours[i].name, arguments[1]) == 0) {
            return behaviours[i].run();
        }
    }
    return 99;
}
