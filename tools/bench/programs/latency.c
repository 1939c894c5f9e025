/* bench-latency FILE PAIRS THREADS PAUSE_NS: how long each malloc and each free takes, by rdtsc
 * before and after; the distributions go into FILE as JSON. Room: tools (bench).
 *
 * One rule: nothing but the one call stands between the two readings; the readings' own time is in
 * every figure, the same with and without a profiler. Blocks come from 20 frames deep by one of
 * 1,000 paths; a thread waits PAUSE_NS after each pair (a program that does something), or not at
 * all (a flood). */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#include "tools/bench/programs/descend.h"
#include "tools/bench/programs/random.h"

enum {
    LIVE = 10000,
    PATHS = 1000,
    DEPTH = 20,
    THREADS_MAX = 64,
    /* Buckets: 32 to each power of two, so a figure is known to 3 %. */
    SUB_BITS = 5,
    SUB = 1 << SUB_BITS,
    BUCKETS = (64 - SUB_BITS + 1) * SUB
};

enum call { CALL_MALLOC, CALL_FREE, CALL_COUNT };

struct histogram {
    uint64_t counts[BUCKETS];
    uint64_t longest_ticks;
};

struct worker {
    struct histogram histograms[CALL_COUNT];
    void *live[LIVE];
    uint64_t random, state;
};

static struct worker workers[THREADS_MAX];
static uint64_t pairs_each, pause_ticks;

static size_t bucket_of(uint64_t ticks) {
    if (ticks < SUB) {
        return ticks;
    }
    const unsigned shift = 63U - (unsigned)__builtin_clzll(ticks) - SUB_BITS;
    return ((size_t)(shift + 1) << SUB_BITS) + (size_t)((ticks >> shift) - SUB);
}

/* The smallest number of ticks of the bucket behind this one. */
static uint64_t end_of(size_t bucket) {
    const size_t next = bucket + 1;
    if (next < SUB) {
        return next;
    }
    return (uint64_t)(SUB + next % SUB) << (next / SUB - 1);
}

static void count(struct histogram *histogram, uint64_t ticks) {
    histogram->counts[bucket_of(ticks)]++;
    if (ticks > histogram->longest_ticks) {
        histogram->longest_ticks = ticks;
    }
}

static uint64_t ticks_now(void) {
    _mm_lfence();
    return __rdtsc();
}

static void replace(void *context) {
    struct worker *worker = context;
    void **victim = &worker->live[worker->random % LIVE];
    const size_t size = ml_bench_size(worker->random);
    const uint64_t before_free = ticks_now();
    free(*victim);
    const uint64_t before_malloc = ticks_now();
    void *block = malloc(size);
    const uint64_t after = ticks_now();
    *victim = block;
    count(&worker->histograms[CALL_FREE], before_malloc - before_free);
    count(&worker->histograms[CALL_MALLOC], after - before_malloc);
}

static void *work(void *context) {
    struct worker *worker = context;
    struct ml_descent descent = {.leaf = replace, .context = worker};
    for (uint64_t i = 0; i < pairs_each; i++) {
        worker->random = ml_bench_random(&worker->state);
        descent.path = (uint32_t)(worker->random >> 32) % PATHS;
        ml_descend(&descent, DEPTH);
        const uint64_t start = ticks_now();
        while (pause_ticks > 0 && ticks_now() - start < pause_ticks) {
        }
    }
    return NULL;
}

static uint64_t ns_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* Over 50 ms: a reading is good to some 30 ns, so the rate to a millionth. */
static double ticks_a_ns(void) {
    enum { CALIBRATION_NS = 50000000 };
    const uint64_t start_ns = ns_now(), start_ticks = ticks_now();
    uint64_t now_ns = start_ns;
    while (now_ns - start_ns < CALIBRATION_NS) {
        now_ns = ns_now();
    }
    return (double)(ticks_now() - start_ticks) / (double)(now_ns - start_ns);
}

static void write_histogram(FILE *out, size_t threads, enum call call) {
    uint64_t longest = 0;
    fprintf(out, "{\"buckets\": [");
    const char *comma = "";
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < threads; i++) {
            sum += workers[i].histograms[call].counts[bucket];
        }
        if (sum > 0) {
            fprintf(
                out,
                "%s[%llu, %llu]",
                comma,
                (unsigned long long)end_of(bucket),
                (unsigned long long)sum
            );
            comma = ", ";
        }
    }
    for (size_t i = 0; i < threads; i++) {
        const uint64_t mine = workers[i].histograms[call].longest_ticks;
        longest = mine > longest ? mine : longest;
    }
    fprintf(out, "], \"longest_ticks\": %llu}", (unsigned long long)longest);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "bench-latency FILE PAIRS THREADS PAUSE_NS\n");
        return 2;
    }
    const size_t threads = strtoull(argv[3], NULL, 10);
    const double rate = ticks_a_ns();
    pthread_t ids[THREADS_MAX];
    if (threads == 0 || threads > THREADS_MAX) {
        fprintf(stderr, "bench-latency: 1 to %d threads\n", THREADS_MAX);
        return 1;
    }
    pairs_each = strtoull(argv[2], NULL, 10) / threads;
    pause_ticks = (uint64_t)(strtod(argv[4], NULL) * rate);
    for (size_t i = 0; i < threads; i++) {
        workers[i].state = i + 1;
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "bench-latency: no thread\n");
            return 1;
        }
    }
    for (size_t i = 0; i < threads; i++) {
        (void)pthread_join(ids[i], NULL);
    }
    FILE *out = fopen(argv[1], "w");
    if (out == NULL) {
        perror(argv[1]);
        return 1;
    }
    fprintf(out, "{\"ticks_a_ns\": %.9f, \"malloc\": ", rate);
    write_histogram(out, threads, CALL_MALLOC);
    fprintf(out, ", \"free\": ");
    write_histogram(out, threads, CALL_FREE);
    fprintf(out, "}\n");
    return fclose(out) == 0 ? 0 : 1;
}
