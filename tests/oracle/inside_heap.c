#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/oracle/inside.h"

enum { CLASSES = 48, LEAST_SHIFT = 5, CHUNK_SHIFT = 20 };

struct header {
    uint64_t class; /* log2 of its bytes, header and all */
    void *start;    /* what the header's memory began with */
};

struct free_block {
    struct free_block *next;
};

/* A process forked by one thread may have another one's lock: the test forks when it has one. */
static atomic_flag lock = ATOMIC_FLAG_INIT;
static struct free_block *lists[CLASSES];
static uint8_t *chunk;
static size_t chunk_left;

static void enter(void) {
    while (atomic_flag_test_and_set(&lock)) {
        (void)sched_yield();
    }
}

static void leave(void) {
    atomic_flag_clear(&lock);
}

static void *map(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static uint8_t *carve(size_t bytes) {
    if (chunk_left < bytes) {
        chunk = map((size_t)1 << CHUNK_SHIFT);
        chunk_left = chunk != NULL ? (size_t)1 << CHUNK_SHIFT : 0;
    }
    uint8_t *carved = chunk;
    if (carved != NULL) {
        chunk += bytes;
        chunk_left -= bytes;
    }
    return carved;
}

static uint8_t *take(uint64_t class) {
    uint8_t *taken = NULL;
    enter();
    if (lists[class] != NULL) {
        taken = (uint8_t *)lists[class];
        lists[class] = lists[class]->next;
    } else {
        const size_t bytes = (size_t)1 << class;
        taken = class >= CHUNK_SHIFT ? map(bytes) : carve(bytes);
    }
    leave();
    return taken;
}

void *inside_place(size_t alignment, size_t size) {
    uint64_t class = LEAST_SHIFT;
    uint8_t *start = NULL;
    alignment = alignment < sizeof(struct header) ? sizeof(struct header) : alignment;
    if (size <= (size_t)1 << (CLASSES - 2)) {
        while ((size_t)1 << class < size + alignment + sizeof(struct header)) {
            class ++;
        }
        start = take(class);
    }
    if (start == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    uint8_t *block = start + sizeof(struct header);
    block += (alignment - (uintptr_t)block % alignment) % alignment;
    ((struct header *)(void *)block)[-1] = (struct header){.class = class, .start = start};
    return block;
}

void inside_put_back(void *block) {
    if (block == NULL) {
        return;
    }
    const uint64_t class = ((struct header *)block)[-1].class;
    struct free_block *start = ((struct header *)block)[-1].start;
    enter();
    start->next = lists[class];
    lists[class] = start;
    leave();
}

void *inside_clear(void *block, size_t count, size_t size) {
    return block != NULL ? memset(block, 0, count * size) : NULL;
}

size_t inside_room(const void *block) {
    const struct header *header = &((const struct header *)block)[-1];
    return ((size_t)1 << header->class) -
           (size_t)((const uint8_t *)block - (const uint8_t *)header->start);
}
