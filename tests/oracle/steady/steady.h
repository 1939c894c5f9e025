/* What the programs here have in common: each works all the time, with books of its own, until the
 * file "stop" is there; it says then `TURNS WRONG` on stdout, and ends with 0. What is wrong is
 * told on stderr. memlog is attached to them and taken back meanwhile (tools/dev/attach_cycles.py),
 * and they must not see it. */
#ifndef MEMLOG_TESTS_ORACLE_STEADY_STEADY_H
#define MEMLOG_TESTS_ORACLE_STEADY_STEADY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEADY_BLOCKS = 32, STEADY_TOLD_MAX = 20, STEADY_NS_A_MS = 1000000 };

struct steady {
    uint64_t turns, wrong; /* by __atomic_: C++ has no _Atomic */
    bool is_over;          /* and this */
};
static struct steady steady;

static inline bool steady_is_over(void) {
    return __atomic_load_n(&steady.is_over, __ATOMIC_ACQUIRE);
}

static inline uint64_t steady_now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t steady_next(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* A turn is done. `number` says more of one that was wrong. */
static inline void steady_count(bool is_right, const char *what, long number) {
    (void)__atomic_fetch_add(&steady.turns, 1, __ATOMIC_RELAXED);
    if (!is_right && __atomic_fetch_add(&steady.wrong, 1, __ATOMIC_RELAXED) < STEADY_TOLD_MAX) {
        (void)fprintf(stderr, "wrong: %s (%ld)\n", what, number);
    }
}

static inline void steady_sleep_us(long count) {
    const struct timespec pause = {.tv_sec = count / 1000000, .tv_nsec = count % 1000000 * 1000};
    if (nanosleep(&pause, NULL) != 0) {
        steady_count(false, "nanosleep was interrupted", count);
    }
}

/* Blocks of many sizes, each with a value of its own, made larger and smaller, and freed: whether
 * all kept what was in them. */
static inline bool steady_blocks(uint64_t seed) {
    unsigned char *blocks[STEADY_BLOCKS];
    size_t sizes[STEADY_BLOCKS];
    uint64_t random = seed * 2 + 1;
    bool is_right = true;
    for (uint32_t i = 0; i < STEADY_BLOCKS; i++) {
        sizes[i] = 1 + (size_t)(steady_next(&random) % 3000);
        blocks[i] = (unsigned char *)malloc(sizes[i]);
        memset(blocks[i], (int)(seed + i) & 255, sizes[i]);
    }
    for (uint32_t i = 0; i < STEADY_BLOCKS; i += 3) {
        const size_t larger = 1 + (size_t)(steady_next(&random) % 5000);
        blocks[i] = (unsigned char *)realloc(blocks[i], larger);
        sizes[i] = larger < sizes[i] ? larger : sizes[i];
    }
    for (uint32_t i = 0; i < STEADY_BLOCKS; i++) {
        for (size_t k = 0; k < sizes[i]; k += 7) {
            is_right = is_right && blocks[i][k] == (unsigned char)((seed + i) & 255);
        }
        free(blocks[i]);
    }
    return is_right;
}

static inline void steady_thread(void *(*run)(void *), void *argument) {
    pthread_t id;
    if (pthread_create(&id, NULL, run, argument) != 0) {
        (void)fprintf(stderr, "no thread\n");
        _exit(99);
    }
    (void)pthread_detach(id);
}

/* The main thread: until all is over. */
static inline void steady_wait(void) {
    (void)!write(1, "ready\n", 6);
    while (access("stop", F_OK) != 0) {
        steady_sleep_us(20000);
    }
    __atomic_store_n(&steady.is_over, true, __ATOMIC_RELEASE);
}

static inline int steady_end(void) {
    (void)printf("%llu %llu\n", (unsigned long long)steady.turns, (unsigned long long)steady.wrong);
    return 0;
}

#endif
