/* The program that lease_test runs under the preload. Its threads and processes allocate by turns:
 * nobody begins before the one before is done, so every event of a turn is behind every event of
 * the turns before it. What belongs to a turn is told by its size. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/wire/lease.h"
#include "tests/client/stream/lease_target.h"

enum { THREADS_MAX = 8 };

struct shared {
    _Atomic uint32_t turn;
    _Atomic uint32_t ready;
};

struct actor {
    uint32_t index;
};

static struct shared *shared;
static uint32_t actors, turns;
/* A block of this process's last turn: whoever of it comes next frees it. */
static _Atomic(void *) handed;
static void *volatile sink;

static uint32_t draw(uint32_t turn, uint32_t what) {
    uint64_t mixed = (turn * 4 + what + 1) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 29;
    mixed *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(mixed >> 33);
}

/* Mostly a few events; now and then so many that the lane comes to hold the lease. */
static uint32_t burst(uint32_t turn) {
    return draw(turn, 1) % 8 == 0 ? 3000 : 1 + draw(turn, 2) % 40;
}

static void take_turn(uint32_t turn) {
    const size_t size = LEASE_FIRST_BYTES + turn;
    free(atomic_exchange(&handed, NULL));
    const uint32_t count = burst(turn);
    for (uint32_t i = 0; i < count; i++) {
        sink = malloc(size);
        free(sink);
    }
    atomic_store(&handed, malloc(size));
}

static void *act(void *argument) {
    const struct actor *actor = argument;
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < actors) {
        (void)sched_yield();
    }
    for (uint32_t turn = 0; turn < turns;) {
        turn = atomic_load(&shared->turn);
        if (turn < turns && draw(turn, 0) % actors == actor->index) {
            take_turn(turn);
            atomic_store(&shared->turn, turn + 1);
        } else {
            (void)sched_yield();
        }
    }
    return NULL;
}

static void act_in_threads(uint32_t first, uint32_t threads) {
    struct actor each[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    for (uint32_t i = 0; i < threads; i++) {
        each[i].index = first + i;
    }
    for (uint32_t i = 1; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, act, &each[i]) != 0) {
            abort();
        }
    }
    (void)act(&each[0]);
    for (uint32_t i = 1; i < threads; i++) {
        (void)pthread_join(ids[i], NULL);
    }
}

/* The system call by an instruction of our own, of which the parent's client knows nothing. */
static pid_t bare_fork(void) {
    long result = SYS_fork;
    __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    return (pid_t)result;
}

static int act_in_processes(uint32_t processes, uint32_t threads) {
    int failed = 0;
    for (uint32_t i = 1; i < processes; i++) {
        const pid_t pid = i % 2 == 1 ? fork() : bare_fork();
        if (pid == 0) {
            atomic_store(&handed, NULL);
            act_in_threads(i * threads, threads);
            free(atomic_exchange(&handed, NULL));
            exit(0);
        }
    }
    act_in_threads(0, threads);
    for (uint32_t i = 1; i < processes; i++) {
        int status = 0;
        failed |= wait(&status) < 0 || status != 0;
    }
    return failed;
}

static void pairs(uint32_t count, size_t size) {
    for (uint32_t i = 0; i < count; i++) {
        sink = malloc(size);
        free(sink);
    }
}

/* One thread, and nobody else. */
static int alone(void) {
    pairs(LEASE_PAIRS, LEASE_FIRST_BYTES);
    return 0;
}

/* Who holds the lease is killed: the next one gets it. */
static int orphaned(void) {
    const pid_t pid = fork();
    if (pid == 0) {
        pairs(LEASE_PAIRS, LEASE_FIRST_BYTES);
        (void)kill(getpid(), SIGKILL);
    }
    (void)waitpid(pid, NULL, 0);
    pairs(LEASE_PAIRS, LEASE_FIRST_BYTES + 1);
    return 0;
}

/* Where the lease is mapped: a line of /proc/self/maps ends with its name. */
static struct ml_lease_page *find_lease(void) {
    static char line[4096];
    struct ml_lease_page *found = NULL;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && found == NULL && fgets(line, sizeof(line), maps) != NULL) {
        if (strstr(line, LEASE_NAME) != NULL) {
            found = (struct ml_lease_page *)strtoul(line, NULL, 16);
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found;
}

/* One process puts anything there, others' names among it, as long as another one records. */
static int lied_to(void) {
    struct ml_lease_page *lease = find_lease();
    if (lease == NULL) {
        return 3;
    }
    const pid_t liar = fork();
    if (liar == 0) {
        for (uint32_t i = 0;; i++) {
            __atomic_store_n(&lease->holder, ml_lease_self(i % 4, i % 3), __ATOMIC_RELAXED);
            __atomic_store_n(&lease->numbers, i, __ATOMIC_RELAXED);
        }
    }
    pairs(LEASE_PAIRS, LEASE_FIRST_BYTES);
    const pid_t other = fork();
    if (other == 0) {
        pairs(LEASE_PAIRS, LEASE_FIRST_BYTES);
        exit(0);
    }
    pairs(LEASE_PAIRS, LEASE_FIRST_BYTES);
    int status = 0;
    const bool ended = waitpid(other, &status, 0) == other && status == 0;
    (void)kill(liar, SIGKILL);
    return ended && waitpid(liar, &status, 0) == liar ? 0 : 4;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "lied_to") == 0) {
        return lied_to();
    }
    if (argc == 2 && strcmp(argv[1], "alone") == 0) {
        return alone();
    }
    if (argc == 2 && strcmp(argv[1], "orphaned") == 0) {
        return orphaned();
    }
    if (argc != 4) {
        return 2;
    }
    const uint32_t processes = (uint32_t)atoi(argv[1]);
    const uint32_t threads = (uint32_t)atoi(argv[2]);
    turns = (uint32_t)atoi(argv[3]);
    actors = processes * threads;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || threads > THREADS_MAX) {
        return 2;
    }
    return act_in_processes(processes, threads);
}
