/* Threads that allocate blocks of random sizes, free each other's, resize some and keep a part;
 * then a forked child that does the same alone. With arguments STEPS SEED it takes so many and
 * other sizes, and waits for a line before it begins; some blocks are there before, and half of
 * them are freed at the end. Each process prints what it has by function:
 * a line of NAME LIVE_BYTES LIVE_BLOCKS TOTAL_BYTES TOTAL_BLOCKS, after its pid. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH __attribute__((noinline, visibility("default")))

enum { THREADS = 4, HELD = 2000, LARGE_BYTES = 1 << 20, EARLY = 600 };

struct sum {
    uint64_t live_bytes, live_blocks, total_bytes, total_blocks;
};

struct worker {
    pthread_t thread;
    uint64_t state;
    struct sum kept, churned, resized, large, early;
};

static struct worker workers[THREADS];
static uint64_t steps = 60000;
static void *_Atomic passed_on[64];

static uint64_t pick(struct worker *worker, uint64_t below) {
    worker->state ^= worker->state << 13;
    worker->state ^= worker->state >> 7;
    worker->state ^= worker->state << 17;
    return (worker->state >> 20) % below;
}

static void count(struct sum *sum, uint64_t bytes, int live) {
    sum->total_bytes += bytes;
    sum->total_blocks++;
    sum->live_bytes += live ? bytes : 0;
    sum->live_blocks += live != 0;
}

PATH void keep(struct worker *worker);
PATH void *churn(struct worker *worker);
PATH void resize(struct worker *worker);
PATH void large(struct worker *worker);

PATH void keep(struct worker *worker) {
    const uint64_t bytes = pick(worker, 400);
    if (malloc(bytes) == NULL) {
        abort();
    }
    count(&worker->kept, bytes, 1);
}

PATH void *churn(struct worker *worker) {
    const uint64_t bytes = 1 + pick(worker, 200);
    count(&worker->churned, bytes, 0);
    return pick(worker, 2) == 0 ? malloc(bytes) : calloc(1, bytes);
}

/* Every size counts anew, the last one is live. */
PATH void resize(struct worker *worker) {
    void *block = NULL;
    for (uint64_t i = 0; i < 4; i++) {
        const uint64_t bytes = 1 + pick(worker, 1000);
        block = realloc(block, bytes);
        count(&worker->resized, bytes, i == 3);
    }
}

PATH void large(struct worker *worker) {
    if (malloc(LARGE_BYTES) == NULL) {
        abort();
    }
    count(&worker->large, LARGE_BYTES, 1);
}

PATH void early(struct worker *worker);

static void *early_blocks[EARLY];

PATH void early(struct worker *worker) {
    for (uint64_t i = 0; i < EARLY; i++) {
        early_blocks[i] = malloc(100);
        count(&worker->early, 100, i % 2 == 0);
    }
}

static void free_early(void) {
    for (uint64_t i = 1; i < EARLY; i += 2) {
        free(early_blocks[i]);
    }
}

static void *work(void *argument) {
    struct worker *worker = argument;
    void **held = calloc(HELD, sizeof(*held));
    for (uint64_t step = 0; held != NULL && step < steps; step++) {
        void **place = &held[pick(worker, HELD)];
        free(*place);
        *place = churn(worker);
        if (step % 8 == 0) {
            *place = atomic_exchange(&passed_on[pick(worker, 64)], *place);
        }
        if (step % 4 == 0) {
            keep(worker);
        }
        if (step % 50 == 0) {
            resize(worker);
        }
        if (step % 20000 == 0) {
            large(worker);
        }
    }
    for (uint64_t i = 0; held != NULL && i < HELD; i++) {
        free(held[i]);
    }
    free(held);
    return NULL;
}

static void print(const char *name, size_t offset) {
    struct sum all = {0, 0, 0, 0};
    for (int i = 0; i < THREADS; i++) {
        const struct sum *one =
            (const struct sum *)(const void *)((const char *)&workers[i] + offset);
        all.live_bytes += one->live_bytes;
        all.live_blocks += one->live_blocks;
        all.total_bytes += one->total_bytes;
        all.total_blocks += one->total_blocks;
    }
    printf(
        "%s %llu %llu %llu %llu\n",
        name,
        (unsigned long long)all.live_bytes,
        (unsigned long long)all.live_blocks,
        (unsigned long long)all.total_bytes,
        (unsigned long long)all.total_blocks
    );
}

static void finish(void) {
    for (size_t i = 0; i < 64; i++) {
        free(atomic_exchange(&passed_on[i], NULL));
    }
    printf("pid %d\n", (int)getpid());
    print("keep", offsetof(struct worker, kept));
    print("churn", offsetof(struct worker, churned));
    print("resize", offsetof(struct worker, resized));
    print("large", offsetof(struct worker, large));
    print("early", offsetof(struct worker, early));
    fflush(stdout);
}

int main(int argc, char **argv) {
    uint64_t seed = 0;
    if (argc == 3) {
        steps = strtoull(argv[1], NULL, 10);
        seed = strtoull(argv[2], NULL, 10) * THREADS;
        early(&workers[0]);
        printf("ready\n");
        (void)fflush(stdout);
        (void)getchar();
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i].state = seed + i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            return 1;
        }
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
    free_early();
    finish();
    const pid_t child = fork();
    if (child == 0) {
        for (uint64_t i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){.state = i + 77};
        }
        (void)work(&workers[0]);
        finish();
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
