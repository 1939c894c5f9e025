/* A program that brings its own allocator, and the allocator that it brings: one of the test's own,
 * by several names, or jemalloc or tcmalloc, linked in. Room: tests.
 *
 * One rule: tests/oracle/inside.c calls nothing but `inside`, which each program sets to the
 * functions of its own. */
#ifndef MEMLOG_TESTS_ORACLE_INSIDE_H
#define MEMLOG_TESTS_ORACLE_INSIDE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/oracle/ledger.h"

struct inside {
    void *(*allocate)(size_t size);
    void (*release)(void *block);
    void *(*allocate_zeroed)(size_t count, size_t size);
    void *(*resize)(void *block, size_t size);
    int (*allocate_aligned)(void **out_block, size_t alignment, size_t size);
    void *(*allocate_at)(size_t alignment, size_t size);
    void (*special)(void); /* what else it has; NULL: nothing */
};

extern const struct inside inside;

/* An allocator's function: it keeps its name, and is exported. */
#define INSIDE_FUNCTION __attribute__((visibility("default"), noinline))

/* ---- the test's own allocator: a header in front of each block, free lists by powers of two,
 * memory from mmap */

void *inside_place(size_t alignment, size_t size);
void inside_put_back(void *block);
void *inside_clear(void *block, size_t count, size_t size);

/* How much fits where the block lies. */
size_t inside_room(const void *block);

/* Its functions by names with a prefix, and `inside`. As real ones, they call each other. */
#define INSIDE_FAMILY(prefix) INSIDE_FAMILY_AND(prefix, NULL)
#define INSIDE_FAMILY_AND(prefix, more)                                                            \
    INSIDE_FUNCTION void *prefix##malloc(size_t size);                                             \
    INSIDE_FUNCTION void prefix##free(void *block);                                                \
    INSIDE_FUNCTION void *prefix##calloc(size_t count, size_t size);                               \
    INSIDE_FUNCTION void *prefix##realloc(void *block, size_t size);                               \
    INSIDE_FUNCTION void *prefix##memalign(size_t alignment, size_t size);                         \
    INSIDE_FUNCTION int prefix##posix_memalign(void **out_block, size_t alignment, size_t size);   \
    void *prefix##malloc(size_t size) {                                                            \
        return inside_place(0, size);                                                              \
    }                                                                                              \
    void prefix##free(void *block) {                                                               \
        inside_put_back(block);                                                                    \
    }                                                                                              \
    void *prefix##calloc(size_t count, size_t size) {                                              \
        size_t bytes = 0;                                                                          \
        return __builtin_mul_overflow(count, size, &bytes)                                         \
                   ? NULL                                                                          \
                   : inside_clear(prefix##malloc(bytes), count, size);                             \
    }                                                                                              \
    void *prefix##realloc(void *block, size_t size) {                                              \
        const size_t room = block != NULL ? inside_room(block) : 0;                                \
        if (size <= room) {                                                                        \
            return block;                                                                          \
        }                                                                                          \
        void *moved = prefix##malloc(size);                                                        \
        if (moved != NULL && block != NULL) {                                                      \
            memcpy(moved, block, room);                                                            \
            prefix##free(block);                                                                   \
        }                                                                                          \
        return moved;                                                                              \
    }                                                                                              \
    void *prefix##memalign(size_t alignment, size_t size) {                                        \
        return inside_place(alignment, size);                                                      \
    }                                                                                              \
    int prefix##posix_memalign(void **out_block, size_t alignment, size_t size) {                  \
        void *block = prefix##memalign(alignment, size);                                           \
        *out_block = block != NULL ? block : *out_block;                                           \
        return block != NULL ? 0 : ENOMEM;                                                         \
    }                                                                                              \
    const struct inside inside = {                                                                 \
        .allocate = prefix##malloc,                                                                \
        .release = prefix##free,                                                                   \
        .allocate_zeroed = prefix##calloc,                                                         \
        .resize = prefix##realloc,                                                                 \
        .allocate_aligned = prefix##posix_memalign,                                                \
        .allocate_at = prefix##memalign,                                                           \
        .special = more,                                                                           \
    }

#endif
