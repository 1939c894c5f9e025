/* One thread: every allocation function, every way of realloc, failures, several call paths,
 * recursion, and a random churn. Writes its truth as "end" and returns 7. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/oracle/ledger.h"

/* Where the C library does not have them yet, memlog's preload does. */
__attribute__((weak)) void free_sized(void *block, size_t size);
__attribute__((weak)) void free_aligned_sized(void *block, size_t alignment, size_t size);

/* Sizes that the compiler cannot see, or it would refuse the failing calls. */
static volatile size_t huge = SIZE_MAX / 2;
static volatile size_t over = SIZE_MAX / 8;

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) % bound);
}

int main(int argc, char *argv[]);
LEDGER_PATH void *kinds_malloc(size_t size);
LEDGER_PATH void kinds_calloc(void);
LEDGER_PATH void kinds_realloc(void);
LEDGER_PATH void kinds_realloc_failing(void);
LEDGER_PATH void kinds_reallocarray(void);
LEDGER_PATH void kinds_aligned(void);
LEDGER_PATH void kinds_overflow(void);
LEDGER_PATH void kinds_free(void);
LEDGER_PATH void *leaf(struct ledger_site *site, size_t size);
LEDGER_PATH void *branch_left(struct ledger_site *site, size_t size);
LEDGER_PATH void *branch_right(struct ledger_site *site, size_t size);
LEDGER_PATH void *leaf_resize(struct ledger_site *site, void *old, size_t size);
LEDGER_PATH void *descend(struct ledger_site *site, unsigned depth, size_t size);
LEDGER_PATH void churn(void);
LEDGER_PATH void tower(void);

LEDGER_PATH void *kinds_malloc(size_t size) {
    static struct ledger_site site = {.chain = "kinds_malloc<main"};
    return ledger_alloc(&site, malloc(size), size);
}

LEDGER_PATH void kinds_calloc(void) {
    static struct ledger_site site = {.chain = "kinds_calloc<main"};
    unsigned char *zeroed = ledger_alloc(&site, calloc(33, 7), 33 * 7);
    for (size_t i = 0; i < 33 * 7; i++) {
        if (zeroed[i] != 0) {
            ledger_die("calloc did not clear");
        }
    }
    ledger_alloc(&site, calloc(0, 8), 0);
}

LEDGER_PATH void kinds_realloc(void) {
    static struct ledger_site site = {.chain = "kinds_realloc<main"};
    void *grown = ledger_resize(&site, NULL, realloc(NULL, 40), 40); /* as malloc */
    grown = ledger_resize(&site, grown, realloc(grown, 48), 48);     /* likely in place */
    grown = ledger_resize(&site, grown, realloc(grown, 300000), 300000);
    grown = ledger_resize(&site, grown, realloc(grown, 900000), 900000); /* mremap */
    grown = ledger_resize(&site, grown, realloc(grown, 10), 10);         /* shrunk and moved */
    grown = ledger_resize(&site, grown, realloc(grown, 10), 10);         /* the same size */
    void *gone = ledger_alloc(&site, malloc(77), 77);
    ledger_free(gone);
    if (realloc(gone, 0) != NULL) { /* glibc: a free */
        ledger_die("realloc to 0 gave a block");
    }
    static struct ledger_site elsewhere = {.chain = "leaf<kinds_realloc<main"};
    void *other = leaf(&elsewhere, 123); /* made at one path, resized at another */
    ledger_resize(&site, other, realloc(other, 321), 321);
}

LEDGER_PATH void kinds_realloc_failing(void) {
    static struct ledger_site site = {.chain = "kinds_realloc_failing<main"};
    char *kept = ledger_alloc(&site, malloc(555), 555);
    kept[0] = 'k';
    for (int i = 0; i < 3; i++) {
        errno = 0;
        if (realloc(kept, huge) != NULL || errno != ENOMEM) {
            ledger_die("a realloc of half the address space did not fail");
        }
    }
    if (kept[0] != 'k') {
        ledger_die("a failed realloc lost the block");
    }
    if (realloc(NULL, huge) != NULL) {
        ledger_die("realloc(NULL) of half the address space did not fail");
    }
    ledger_resize(&site, kept, realloc(kept, 556), 556);
}

LEDGER_PATH void kinds_reallocarray(void) {
    static struct ledger_site site = {.chain = "kinds_reallocarray<main"};
    void *array = ledger_resize(&site, NULL, reallocarray(NULL, 10, 12), 120);
    array = ledger_resize(&site, array, reallocarray(array, 20, 12), 240);
    if (reallocarray(array, over, 16) != NULL || errno != ENOMEM) {
        ledger_die("an overflowing reallocarray did not fail");
    }
    if (reallocarray(NULL, over, 16) != NULL) {
        ledger_die("an overflowing reallocarray did not fail");
    }
}

LEDGER_PATH void kinds_aligned(void) {
    static struct ledger_site site = {.chain = "kinds_aligned<main"};
    void *block = NULL;
    for (size_t alignment = 8; alignment <= 65536; alignment *= 4) {
        if (posix_memalign(&block, alignment, alignment + 5) != 0 || (uintptr_t)block % alignment) {
            ledger_die("posix_memalign failed");
        }
        ledger_alloc(&site, block, alignment + 5);
    }
    ledger_alloc(&site, aligned_alloc(64, 640), 640);
    ledger_alloc(&site, memalign(128, 100), 100);
    ledger_alloc(&site, valloc(1000), 1000);
    ledger_alloc(&site, pvalloc(1000), 1000);
    void *untouched = &site;
    if (posix_memalign(&untouched, 3, 10) != EINVAL || untouched != &site) {
        ledger_die("posix_memalign took alignment 3");
    }
    if (posix_memalign(&untouched, 16, huge) != ENOMEM || memalign(4096, huge) || valloc(huge)) {
        ledger_die("an aligned allocation of half the address space did not fail");
    }
}

LEDGER_PATH void kinds_overflow(void) {
    errno = 0;
    if (calloc(over, 16) != NULL || errno != ENOMEM || calloc(huge, 1) != NULL ||
        malloc(huge) != NULL) {
        ledger_die("an overflowing calloc did not fail");
    }
}

LEDGER_PATH void kinds_free(void) {
    static struct ledger_site site = {.chain = "kinds_free<main"};
    free(NULL);
    errno = 4321;
    void *block = ledger_alloc(&site, malloc(64), 64);
    ledger_free(block);
    free(block);
    if (errno != 4321) {
        ledger_die("malloc or free changed errno");
    }
    block = ledger_alloc(&site, malloc(65), 65);
    ledger_free(block);
    if (free_sized) {
        free_sized(block, 65);
    } else {
        free(block);
    }
    block = ledger_alloc(&site, aligned_alloc(32, 96), 96);
    ledger_free(block);
    if (free_aligned_sized) {
        free_aligned_sized(block, 32, 96);
    } else {
        free(block);
    }
}

LEDGER_PATH void *leaf(struct ledger_site *site, size_t size) {
    return ledger_alloc(site, malloc(size), size);
}

LEDGER_PATH void *branch_left(struct ledger_site *site, size_t size) {
    return leaf(site, size);
}

LEDGER_PATH void *branch_right(struct ledger_site *site, size_t size) {
    return leaf(site, size);
}

LEDGER_PATH void *leaf_resize(struct ledger_site *site, void *old, size_t size) {
    return ledger_resize(site, old, realloc(old, size), size);
}

/* 20,000 random operations over 500 slots: most stacks of a real program differ in a few innermost
 * frames alone. */
LEDGER_PATH void churn(void) {
    static struct ledger_site left = {.chain = "leaf<branch_left<churn<main"};
    static struct ledger_site right = {.chain = "leaf<branch_right<churn<main"};
    static struct ledger_site direct = {.chain = "leaf<churn<main"};
    static struct ledger_site resized = {.chain = "leaf_resize<churn<main"};
    static void *slots[500];
    for (int i = 0; i < 20000; i++) {
        void **slot = &slots[random_below(500)];
        size_t size = 1 + random_below(random_below(20) == 0 ? 200000 : 2000);
        if (*slot && random_below(4) == 0) {
            *slot = leaf_resize(&resized, *slot, size);
            continue;
        }
        if (*slot) {
            ledger_free(*slot);
            free(*slot);
            *slot = NULL;
        }
        switch (random_below(4)) {
        case 0:
            *slot = branch_left(&left, size);
            break;
        case 1:
            *slot = branch_right(&right, size);
            break;
        case 2:
            *slot = leaf(&direct, size);
            break;
        default:
            break;
        }
    }
}

LEDGER_PATH void *descend(struct ledger_site *site, unsigned depth, size_t size) {
    if (depth > 1) {
        return descend(site, depth - 1, size);
    }
    return ledger_alloc(site, malloc(size), size);
}

/* The same function many times in a stack; each depth is a path of its own. */
LEDGER_PATH void tower(void) {
    static struct ledger_site one = {.chain = "descend<tower<main"};
    static struct ledger_site five = {
        .chain = "descend<descend<descend<descend<descend<tower<main"};
    static struct ledger_site nine = {
        .chain =
            "descend<descend<descend<descend<descend<descend<descend<descend<descend<tower<main"};
    for (int round = 0; round < 10; round++) {
        descend(&one, 1, 11);
        descend(&nine, 9, 99);
        descend(&five, 5, 55);
        void *freed = descend(&nine, 9, 9);
        ledger_free(freed);
        free(freed);
    }
}

int main(int argc, char *argv[]) {
    kinds_malloc(100);
    kinds_malloc(0);
    kinds_calloc();
    kinds_realloc();
    kinds_realloc_failing();
    kinds_reallocarray();
    kinds_aligned();
    kinds_overflow();
    kinds_free();
    churn();
    tower();
    ledger_write("end", LEDGER_EXACT | LEDGER_PEAK, argc, argv);
    return 7;
}
