/* The program of mapping_test: it maps at places that nobody else takes, and prints nothing. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/recording/mapping_places.h"

static uint8_t *at(uint64_t place) {
    return (uint8_t *)(uintptr_t
    )place; /* NOLINT(performance-no-int-to-ptr): places are numbers here */
}

static int map(uint64_t place, size_t pages) {
    return mmap(
               at(place),
               pages * PAGE,
               PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
               -1,
               0
           ) == at(place)
               ? 0
               : 1;
}

static void handle(int number) {
    (void)number;
    (void)map(PLACE_HANDLER, 1);
}

/* A child that maps and does not allocate. */
static int fork_and_map(void) {
    int status = -1;
    const pid_t pid = fork();
    if (pid == 0) {
        const int failures = map(PLACE_CHILD, 3) + munmap(at(PLACE_CHILD), PAGE);
        _exit(failures);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : 1;
}

/* Names a page of its own stack by its own address. */
static void *work(void *argument) {
    char name[32];
    const uintptr_t here = (uintptr_t)name & ~(uintptr_t)(PAGE - 1);
    (void)snprintf(name, sizeof(name), "%#lx", (unsigned long)(uintptr_t)work);
    (void)prctl(0x53564d41, 0, here, PAGE, name);
    return argument;
}

static int start_thread(size_t stack_bytes) {
    pthread_t thread;
    pthread_attr_t attributes;
    return pthread_attr_init(&attributes) + pthread_attr_setstacksize(&attributes, stack_bytes) +
           pthread_create(&thread, &attributes, work, NULL) + pthread_join(thread, NULL) +
           pthread_create(&thread, NULL, work, NULL) + pthread_join(thread, NULL);
}

int main(void) {
    int failures = map(PLACE_FIRST, 10);
    failures += munmap(at(PLACE_FIRST) + 3 * PAGE, PAGE + 1);
    errno = 0;
    failures += munmap(at(PLACE_FIRST) + 1, PAGE) == -1 && errno == EINVAL ? 0 : 1;
    failures += munmap(at(PLACE_FIRST), PLACE_BEYOND) == -1 && errno == EINVAL ? 0 : 1;
    failures +=
        mremap(at(PLACE_FIRST), PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(PLACE_MOVED)) ==
                at(PLACE_MOVED)
            ? 0
            : 1;
    failures += mremap(at(PLACE_FIRST), PAGE, PAGE, 0) == MAP_FAILED && errno == EFAULT ? 0 : 1;
    errno = 33;
    (void)prctl(0x53564d41, 0, PLACE_MOVED, PAGE, "a name");
    (void)prctl(0x53564d41, 0, PLACE_MOVED, PAGE, "a name");
    (void)prctl(0x53564d41, 0, PLACE_MOVED, PAGE, NULL);
    (void)prctl(0x53564d41, 0, PLACE_MOVED, PAGE, 17);
    const int id = shmget(IPC_PRIVATE, 5 * PAGE, IPC_CREAT | 0600);
    void *const shared = shmat(id, at(PLACE_SHARED), 0);
    failures += shared == at(PLACE_SHARED) ? 0 : 1;
    failures += shmctl(id, IPC_RMID, NULL);
    failures += shmdt(shared);
    failures += signal(SIGUSR1, handle) == SIG_ERR || raise(SIGUSR1) != 0 ? 1 : 0;
    failures += start_thread(STACK_BYTES);
    failures += fork_and_map();
    (void)syscall(SYS_munmap, at(PLACE_MOVED), PAGE); /* memlog does not see it */
    return failures;
}
