/* large blocks N | nodes DEPTH | threads N: one thing very many times, held until a line comes on
 * standard input. Writes "up BYTES BLOCKS", what it holds then by its own count, and at the end
 * "done ok" if what it reads back is what it wrote; ends with 42.
 *   blocks   N live blocks
 *   nodes    2^DEPTH paths through the program, each with a live block at its end
 *   threads  N threads at once, each with live blocks of its own */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE = 42, THREADS_MAX = 4096, BLOCKS_A_THREAD = 20, CALLS_A_THREAD = 200, DEPTH_MAX = 24 };
enum { STACK_BYTES = 64 << 10 };

/* What it holds: a chain through the blocks themselves. */
struct block {
    struct block *next;
    uint64_t check;
};

struct held {
    struct block *first;
    uint64_t bytes, blocks;
};

static struct held held;

static void hold(struct held *mine, uint64_t number) {
    const size_t count_bytes = sizeof(struct block) + number % 32;
    struct block *block = malloc(count_bytes);
    if (block == NULL) {
        abort();
    }
    *block = (struct block){.next = mine->first, .check = (uintptr_t)block ^ mine->blocks};
    mine->first = block;
    mine->bytes += count_bytes;
    mine->blocks++;
}

/* Give all back; whether they were as they were left. */
static bool let_go(struct held *mine) {
    bool good = true;
    while (mine->first != NULL) {
        struct block *block = mine->first;
        mine->blocks--;
        good = good && block->check == ((uintptr_t)block ^ mine->blocks);
        mine->first = block->next;
        free(block);
    }
    return good && mine->blocks == 0;
}

static void up(uint64_t bytes, uint64_t blocks) {
    char line[8];
    printf("up %llu %llu\n", (unsigned long long)bytes, (unsigned long long)blocks);
    (void)fflush(stdout);
    (void)!read(STDIN_FILENO, line, sizeof(line));
}

/* Two calls at each level: every path down is a stack of its own. */
__attribute__((noinline, noclone)) static void descend(uint32_t depth, uint64_t number) {
    if (depth == 0) {
        hold(&held, number);
    } else {
        descend(depth - 1, number << 1);
        descend(depth - 1, number << 1 | 1);
    }
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static pthread_barrier_t holding, leaving;

static void *thread_main(void *argument) {
    struct held *mine = argument;
    for (uint32_t i = 0; i < BLOCKS_A_THREAD; i++) {
        hold(mine, i);
    }
    (void)pthread_barrier_wait(&holding);
    (void)pthread_barrier_wait(&leaving);
    for (uint32_t i = 0; i < CALLS_A_THREAD; i++) {
        free(malloc(i + 1));
    }
    return let_go(mine) ? mine : NULL;
}

static bool run_threads(uint32_t count) {
    static struct held each[THREADS_MAX];
    static pthread_t threads[THREADS_MAX];
    pthread_attr_t attributes;
    bool good = count <= THREADS_MAX && pthread_attr_init(&attributes) == 0 &&
                pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
                pthread_barrier_init(&holding, NULL, count + 1) == 0 &&
                pthread_barrier_init(&leaving, NULL, count + 1) == 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!good || pthread_create(&threads[i], &attributes, thread_main, &each[i]) != 0) {
            return false;
        }
    }
    (void)pthread_barrier_wait(&holding);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += each[i].bytes;
    }
    up(bytes, (uint64_t)count * BLOCKS_A_THREAD);
    (void)pthread_barrier_wait(&leaving);
    for (uint32_t i = 0; i < count; i++) {
        void *answer = NULL;
        good = pthread_join(threads[i], &answer) == 0 && answer == &each[i] && good;
    }
    return good;
}

int main(int count, char **arguments) {
    const uint64_t wanted = count == 3 ? strtoull(arguments[2], NULL, 10) : 0;
    bool good = false;
    if (wanted == 0) {
        return 2;
    }
    if (strcmp(arguments[1], "threads") == 0) {
        good = run_threads((uint32_t)wanted);
    } else {
        if (strcmp(arguments[1], "blocks") == 0) {
            for (uint64_t i = 0; i < wanted; i++) {
                hold(&held, i);
            }
        } else if (wanted <= DEPTH_MAX) {
            descend((uint32_t)wanted, 0);
        }
        up(held.bytes, held.blocks);
        good = let_go(&held);
    }
    puts(good ? "done ok" : "done wrong");
    return CODE;
}
