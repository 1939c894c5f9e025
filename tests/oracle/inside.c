/* A program that brings its own allocator: every function of it in every way, with books of each
 * block; threads that free each other's blocks; a forked child. argv[1] `fork` adds the child. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oracle/inside.h"

enum { THREADS = 4, EACH = 3000, RING = 64 };

/* Sizes that the compiler cannot see. */
static volatile size_t huge = SIZE_MAX / 2;

int main(int argc, char *argv[]);
LEDGER_PATH void plain(void);
LEDGER_PATH void zeroed(void);
LEDGER_PATH void aligned(void);
LEDGER_PATH void *resized(struct ledger_site *site, void *block, size_t size);
LEDGER_PATH void failing(void);
LEDGER_PATH void *worker(void *context);
LEDGER_PATH void child(void);

static struct ledger_site at_plain = {.chain = "plain<main"};
static struct ledger_site at_zeroed = {.chain = "zeroed<main"};
static struct ledger_site at_aligned = {.chain = "aligned<main"};
static struct ledger_site at_resized = {.chain = "resized<main"};
static struct ledger_site at_worker = {.chain = "worker"};
static struct ledger_site at_child = {.chain = "child<main"};

static void give_back(void *block) {
    ledger_free(block);
    inside.release(block);
}

LEDGER_PATH void plain(void) {
    for (size_t i = 0; i < 500; i++) {
        void *block = ledger_alloc(&at_plain, inside.allocate(i * 7), i * 7);
        if (i % 3 == 0) {
            give_back(block);
        }
    }
    inside.release(NULL);
}

LEDGER_PATH void zeroed(void) {
    const unsigned char *block = ledger_alloc(&at_zeroed, inside.allocate_zeroed(33, 7), 33 * 7);
    for (size_t i = 0; i < 33 * 7; i++) {
        if (block[i] != 0) {
            ledger_die("calloc did not clear");
        }
    }
    if (inside.allocate_zeroed(huge, 16) != NULL) {
        ledger_die("calloc overflowed");
    }
}

LEDGER_PATH void aligned(void) {
    void *block = NULL;
    if (inside.allocate_aligned(&block, 256, 1000) != 0 || (uintptr_t)block % 256 != 0) {
        ledger_die("posix_memalign");
    }
    ledger_alloc(&at_aligned, block, 1000);
    block = ledger_alloc(&at_aligned, inside.allocate_at(64, 5000), 5000);
    if ((uintptr_t)block % 64 != 0) {
        ledger_die("memalign");
    }
    give_back(block);
}

LEDGER_PATH void *resized(struct ledger_site *site, void *block, size_t size) {
    return ledger_resize(site, block, inside.resize(block, size), size);
}

/* The block stays, and is freed as what it was. */
LEDGER_PATH void failing(void) {
    static struct ledger_site at_failing = {.chain = "resized<failing<main"};
    void *block = resized(&at_failing, NULL, 100);
    if (inside.resize(block, huge) != NULL) {
        ledger_die("a realloc of half the address space");
    }
    give_back(block);
}

/* A ring of blocks that threads put in and take out: each frees what another one made. */
static struct { _Atomic(void *) block; } ring[RING];

LEDGER_PATH void *worker(void *context) {
    uint64_t state = (uint64_t)(uintptr_t)context + 88172645463325252u;
    for (unsigned i = 0; i < EACH; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const size_t size = sizeof(size_t) + (state >> 40) % 4000;
        size_t *block = inside.allocate(size);
        *block = size;
        ledger_add(&at_worker, size);
        size_t *old = atomic_exchange(&ring[(state >> 20) % RING].block, block);
        if (old != NULL) {
            ledger_sub(&at_worker, *old);
            inside.release(old);
        }
    }
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, worker, (void *)i) != 0) {
            ledger_die("pthread_create");
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

LEDGER_PATH void child(void) {
    for (size_t i = 0; i < 100; i++) {
        ledger_alloc(&at_child, inside.allocate(1000 + i), 1000 + i);
    }
}

int main(int argc, char *argv[]) {
    plain();
    zeroed();
    aligned();
    void *grown = NULL;
    for (size_t size = 1; size < 3000000; size *= 3) {
        grown = resized(&at_resized, grown, size);
    }
    (void)resized(&at_resized, grown, 10);
    failing();
    if (inside.special != NULL) {
        inside.special();
    }
    run_threads();
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        const pid_t pid = fork();
        if (pid == 0) {
            ledger_forked();
            child();
            ledger_write("child", 0, argc, argv);
            _exit(3);
        }
        waitpid(pid, NULL, 0);
    }
    ledger_write("end", 0, argc, argv);
    return 0;
}
