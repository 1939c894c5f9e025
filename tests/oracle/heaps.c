/* Reports blocks of heaps of its own, and keeps the books: `heaps STEPS SEED INTERVAL [QUIET]`.
 * Threads take blocks of random sizes and types in two heaps, give back each other's, and malloc
 * besides; then a forked child does the same, and one that it forks. Ids are pointers in the first
 * heap ("pool", every block), and numbers of all kinds in the second ("handles", sampled at
 * INTERVAL). Each process prints its pid, and of each heap, function and type a line of
 * HEAP FUNCTION TYPE LIVE_BYTES LIVE_BLOCKS TOTAL_BYTES TOTAL_BLOCKS; for a heap's peak
 * HEAP peak BYTES. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMLOG_WEAK
#include "client/memlog.h"

#define PATH __attribute__((noinline, visibility("default")))

enum { THREADS = 4, HELD = 500, TYPES = 3, FUNCTIONS = 2, HEAPS = 2 };

static const char *const heap_names[HEAPS] = {"pool", "handles"};
static const char *const type_names[TYPES] = {"", "Node", "std::vector<Edge>"};
static const char *const function_names[FUNCTIONS] = {"take_pool", "take_handle"};

struct sum {
    uint64_t live_bytes, live_blocks, total_bytes, total_blocks;
};

struct block {
    uint64_t id, bytes;
    unsigned type;
    int is_live;
};

struct worker {
    pthread_t thread;
    uint64_t state;
    unsigned number;
    struct block held[HEAPS][HELD];
};

static struct worker workers[THREADS];
static uint32_t heaps[HEAPS];
static uint32_t types[TYPES];
static struct sum sums[HEAPS][TYPES];
static uint64_t live[HEAPS];
static uint64_t peaks[HEAPS];
static uint64_t steps;
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;

static uint64_t pick(struct worker *worker, uint64_t below) {
    worker->state ^= worker->state << 13;
    worker->state ^= worker->state >> 7;
    worker->state ^= worker->state << 17;
    return (worker->state >> 20) % below;
}

/* The events of a heap are in the order of the books: its peak is exact. */
static void enter(unsigned heap, const struct block *block, int sign) {
    struct sum *sum = &sums[heap][block->type];
    if (sign > 0) {
        sum->total_bytes += block->bytes;
        sum->total_blocks++;
        sum->live_bytes += block->bytes;
        sum->live_blocks++;
        live[heap] += block->bytes;
        peaks[heap] = live[heap] > peaks[heap] ? live[heap] : peaks[heap];
    } else {
        sum->live_bytes -= block->bytes;
        sum->live_blocks--;
        live[heap] -= block->bytes;
    }
}

PATH void take_pool(struct block *block);
PATH void take_handle(struct block *block);

PATH void take_pool(struct block *block) {
    if (block->type == 0) {
        memlog_alloc(heaps[0], block->id, block->bytes);
    } else {
        memlog_alloc_typed(heaps[0], block->id, block->bytes, types[block->type]);
    }
    __asm__ volatile(""); /* no tail call: the frame is what the books name */
}

PATH void take_handle(struct block *block) {
    memlog_alloc_typed(heaps[1], block->id, block->bytes, types[block->type]);
    __asm__ volatile("");
}

/* Small ones, 0, huge ones, and those that look like negative numbers. */
static uint64_t handle_of(const struct worker *worker, unsigned place) {
    const uint64_t number = (uint64_t)worker->number * HELD + place;
    switch (place % 4) {
    case 0:
        return number;
    case 1:
        return UINT64_MAX - number;
    case 2:
        return (UINT64_C(1) << 63) + number * 4096;
    default:
        return (UINT64_C(1) << 55) + number;
    }
}

static void give_back(unsigned heap, struct block *block) {
    if (!block->is_live) {
        return;
    }
    (void)pthread_mutex_lock(&books);
    memlog_free(heaps[heap], block->id);
    enter(heap, block, -1);
    (void)pthread_mutex_unlock(&books);
    if (heap == 0) {
        free((void *)(uintptr_t)block->id); // NOLINT(performance-no-int-to-ptr): ids are numbers
    }
    block->is_live = 0;
}

static void take(struct worker *worker, unsigned heap, unsigned place) {
    struct block *block = &worker->held[heap][place];
    give_back(heap, block);
    block->bytes = pick(worker, 300);
    block->type = (unsigned)pick(worker, TYPES);
    block->id = heap == 0 ? (uint64_t)(uintptr_t)malloc(block->bytes) : handle_of(worker, place);
    (void)pthread_mutex_lock(&books);
    if (heap == 0) {
        take_pool(block);
    } else {
        take_handle(block);
    }
    enter(heap, block, 1);
    (void)pthread_mutex_unlock(&books);
    block->is_live = 1;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    for (uint64_t step = 0; step < steps; step++) {
        take(worker, (unsigned)(step % HEAPS), (unsigned)pick(worker, HELD));
        if (step % 3 == 0) {
            give_back((unsigned)(step % HEAPS), &worker->held[step % HEAPS][pick(worker, HELD)]);
        }
    }
    return NULL;
}

static void run(uint64_t seed) {
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].state = seed * 1000 + i + 1;
        workers[i].number = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            abort();
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
    memlog_free(heaps[0], 12345); /* never reported */
}

static void print(void) {
    printf("pid %d\n", (int)getpid());
    for (unsigned heap = 0; heap < HEAPS; heap++) {
        for (unsigned type = 0; type < TYPES; type++) {
            const struct sum *sum = &sums[heap][type];
            printf(
                "%s %s \"%s\" %llu %llu %llu %llu\n",
                heap_names[heap],
                function_names[heap],
                type_names[type],
                (unsigned long long)sum->live_bytes,
                (unsigned long long)sum->live_blocks,
                (unsigned long long)sum->total_bytes,
                (unsigned long long)sum->total_blocks
            );
        }
        printf("%s peak %llu\n", heap_names[heap], (unsigned long long)peaks[heap]);
    }
    (void)fflush(stdout);
}

/* What a child has from its parent is no event of its own: it begins with nothing. */
static void forget(void) {
    memset(sums, 0, sizeof(sums));
    memset(live, 0, sizeof(live));
    memset(peaks, 0, sizeof(peaks));
    memset(workers, 0, sizeof(workers));
}

static void in_child(uint64_t seed, int depth) {
    const pid_t child = fork();
    if (child == 0) {
        forget();
        run(seed);
        print();
        if (depth > 1) {
            in_child(seed + 1, depth - 1);
        }
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

int main(int argc, char **argv) {
    steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const uint64_t interval = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (memlog_heap != NULL) {
        heaps[0] = memlog_heap(heap_names[0], 1);
        heaps[1] = memlog_heap(heap_names[1], interval);
        for (unsigned type = 1; type < TYPES; type++) {
            types[type] = memlog_type(type_names[type]);
        }
        if (heaps[0] == 0 || heaps[1] == 0 || heaps[0] == heaps[1] ||
            memlog_heap(heap_names[0], 7) != heaps[0] || memlog_type(type_names[1]) != types[1]) {
            return 3;
        }
    } else {
        return argc > 4 ? 0 : 4;
    }
    run(seed);
    print();
    in_child(seed + 1, 2);
    return 0;
}
