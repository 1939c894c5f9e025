/* A heap of which little is left: who keeps its pages is told to the byte. No stdio, so that all of
 * the heap is its own. ARG1: how many small blocks; ARG2: of so many one is left; ARG3: where to
 * write what is live: "KIND ADDRESS REQUESTED TOUCHED" a line. Then it stands still until a byte
 * comes. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALL_BYTES = 34, MIXED_EVERY = 1000, LARGE_BYTES = 1 << 20, LARGE_COUNT = 4 };

static void *small(void) {
    return malloc(SMALL_BYTES);
}

static void *mixed(size_t number) {
    return malloc(100 + number % 3000);
}

static void *large(void) {
    return malloc(LARGE_BYTES);
}

static void *touched(void *block, size_t bytes) {
    memset(block, 1, bytes);
    return block;
}

static void tell(int fd, const char *kind, const void *block, size_t bytes, size_t touched_bytes) {
    char line[100];
    const int count = snprintf(
        line, sizeof line, "%s %zu %zu %zu\n", kind, (size_t)(uintptr_t)block, bytes, touched_bytes
    );
    (void)write(fd, line, (size_t)count);
}

int main(int count_words, char **words) {
    if (count_words != 4) {
        return 2;
    }
    const size_t count = strtoul(words[1], NULL, 10);
    const size_t every = strtoul(words[2], NULL, 10);
    const int fd = open(words[3], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const size_t mixed_count = count / MIXED_EVERY;
    /* Not in the heap: they would be a third kind of block. */
    void **const blocks = mmap(
        NULL,
        (count + mixed_count + 1) * sizeof(void *),
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS,
        -1,
        0
    );
    void **const others = blocks + count;
    char byte = 0;
    for (size_t i = 0; i < count; i++) {
        blocks[i] = touched(small(), SMALL_BYTES);
        if (i % MIXED_EVERY == 0) {
            const size_t number = i / MIXED_EVERY;
            others[number] = touched(mixed(number), 100 + number % 3000);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (i % every != 0) {
            free(blocks[i]);
        } else {
            tell(fd, "small", blocks[i], SMALL_BYTES, SMALL_BYTES);
        }
    }
    for (size_t i = 0; i < (count + MIXED_EVERY - 1) / MIXED_EVERY; i++) {
        tell(fd, "mixed", others[i], 100 + i % 3000, 100 + i % 3000);
    }
    for (size_t i = 0; i < LARGE_COUNT; i++) {
        const size_t bytes = LARGE_BYTES / LARGE_COUNT * i + 1;
        tell(fd, "large", touched(large(), bytes), LARGE_BYTES, bytes);
    }
    (void)close(fd);
    (void)write(STDOUT_FILENO, "ready\n", 6);
    (void)read(STDIN_FILENO, &byte, 1);
    return 0;
}
