/* Manual: what a walk costs, in ns. `out/unwind_bench [OUTER [INNER [EVENTS]]]`: OUTER frames stay,
 * below them INNER frames are new with each event (two paths by turns). Not run by anybody but
 * people. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/client/unwind/oracle.h"

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum { RUNS = 300 };

struct bench {
    struct ml_oracle *oracle;
    uint32_t inner;
    uint64_t events;
    bool walk;
};

__attribute__((noinline)) static long inner_a(struct bench *bench, uint32_t depth);
__attribute__((noinline)) static long inner_b(struct bench *bench, uint32_t depth);

static long inner_end(struct bench *bench) {
    if (bench->walk) {
        ml_oracle_walk(bench->oracle);
    }
    return 1;
}

static long inner_a(struct bench *bench, uint32_t depth) {
    return (depth == 0 ? inner_end(bench) : inner_b(bench, depth - 1)) + 1;
}

static long inner_b(struct bench *bench, uint32_t depth) {
    return (depth == 0 ? inner_end(bench) : inner_a(bench, depth - 1)) + 2;
}

static void loop(struct bench *bench) {
    long sum = 0;
    for (uint64_t i = 0; i < bench->events; i++) {
        sum += i % 2 == 0 ? inner_a(bench, bench->inner) : inner_b(bench, bench->inner);
    }
    __asm__ volatile("" ::"r"(sum));
}

__attribute__((noinline)) static long outer(struct bench *bench, uint32_t depth) {
    if (depth == 0) {
        uint64_t bare =
            UINT64_MAX; /* of many short runs each: what else the machine does falls out */
        uint64_t walking = UINT64_MAX;
        for (int run = 0; run < RUNS; run++) {
            bench->walk = run % 2 == 0;
            uint64_t begin = now_ns();
            loop(bench);
            uint64_t ns = now_ns() - begin;
            uint64_t *best = bench->walk ? &walking : &bare;
            *best = ns < *best ? ns : *best;
        }
        printf(
            "%u frames deep, %u of them new: %.1f ns an event (%.1f kept)\n",
            bench->oracle->deepest,
            bench->inner + 1,
            (double)(walking - bare) / (double)bench->events,
            (double)bench->oracle->kept_frames / (double)bench->oracle->events
        );
        return 0;
    }
    long below = outer(bench, depth - 1);
    __asm__ volatile("" : "+r"(below)); /* or the compiler makes a loop of it */
    return below + 1;
}

int main(int argc, char **argv) {
    uint32_t depth = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20;
    struct bench bench = {
        .oracle = ml_oracle_new(NULL, 0),
        .inner = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 2,
        .events = argc > 3 ? strtoull(argv[3], NULL, 10) : 10000,
    };
    return outer(&bench, depth) == (long)depth ? 0 : 1;
}
