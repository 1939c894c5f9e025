/* bench-stall SHAPE: makes memory of that shape, writes "ready", and then maps, touches and unmaps
 * a page and allocates and frees a block, again and again. At each line on standard input it writes
 * the longest of each since the line before, in ns: "MAP BLOCK". resident  1 GiB, every page
 * touched reserved  64 GiB, 2,048 pages touched mappings  32,768 mappings of a page blocks    a
 * million blocks of 100 bytes, every second freed */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MAPPINGS = 32768, BLOCKS = 1000000, BLOCK = 100, TOUCHED = 2048 };
#define GIB ((size_t)1 << 30)
#define RESERVED (64 * GIB)

static char *map(size_t bytes) {
    char *at = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0
    );
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

static void touch(char *at, size_t bytes, size_t step) {
    for (size_t i = 0; i < bytes; i += step) {
        *(volatile char *)(at + i) = 1;
    }
}

static void make(const char *shape) {
    static char *blocks[BLOCKS];
    if (strcmp(shape, "resident") == 0) {
        touch(map(GIB), GIB, PAGE);
    } else if (strcmp(shape, "reserved") == 0) {
        touch(map(RESERVED), RESERVED, RESERVED / TOUCHED);
    } else if (strcmp(shape, "mappings") == 0) {
        for (size_t i = 0; i < MAPPINGS; i++) {
            char *at = map(PAGE);
            touch(at, PAGE, PAGE);
            if (i % 2 != 0) { /* or the kernel joins neighbours */
                (void)mprotect(at, PAGE, PROT_READ);
            }
        }
    } else {
        for (size_t i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(BLOCK);
            memset(blocks[i], 1, BLOCK);
        }
        for (size_t i = 0; i < BLOCKS; i += 2) {
            free(blocks[i]);
        }
    }
}

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t most(uint64_t one, uint64_t other) {
    return one > other ? one : other;
}

int main(int count, char **words) {
    char line[64];
    void *volatile block; /* or the compiler leaves both calls out */
    uint64_t longest_map = 0;
    uint64_t longest_block = 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (count != 2) {
        return 2;
    }
    make(words[1]);
    puts("ready");
    (void)fflush(stdout);
    for (;;) {
        const uint64_t begun = now_ns();
        char *at = map(PAGE);
        *(volatile char *)at = 1;
        (void)munmap(at, PAGE);
        const uint64_t mapped = now_ns();
        block = malloc(BLOCK);
        free(block);
        const uint64_t ended = now_ns();
        longest_map = most(longest_map, mapped - begun);
        longest_block = most(longest_block, ended - mapped);
        if (poll(&input, 1, 0) > 0) {
            if (read(STDIN_FILENO, line, sizeof(line)) <= 0) {
                return 0;
            }
            printf(
                "%llu %llu\n", (unsigned long long)longest_map, (unsigned long long)longest_block
            );
            (void)fflush(stdout);
            longest_map = longest_block = 0;
        }
    }
}
