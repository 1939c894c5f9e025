/* A library that comes and goes (comings.c): it allocates when it is loaded, when it is asked and
 * when it is unloaded, which takes it some time. With OWN_ALLOCATOR it has a malloc of its own. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef OWN_ALLOCATOR
/* Blocks of one size, one thread at a time. */
enum { OWN_BLOCKS = 64, OWN_BYTES = 4096 };
static unsigned char own_memory[OWN_BLOCKS][OWN_BYTES] __attribute__((aligned(64)));
static unsigned char own_used[OWN_BLOCKS];

__attribute__((noinline)) void *malloc(size_t size_bytes) {
    for (uint32_t i = 0; i < OWN_BLOCKS && size_bytes <= OWN_BYTES; i++) {
        if (own_used[i] == 0) {
            own_used[i] = 1;
            return own_memory[i];
        }
    }
    return NULL;
}

__attribute__((noinline)) void *calloc(size_t count, size_t size_bytes) {
    void *address = malloc(count * size_bytes);
    return address != NULL ? memset(address, 0, count * size_bytes) : NULL;
}

__attribute__((noinline)) void *realloc(void *address, size_t size_bytes) {
    return address != NULL ? (size_bytes <= OWN_BYTES ? address : NULL) : malloc(size_bytes);
}

__attribute__((noinline)) void free(void *address) {
    if (address != NULL) {
        own_used[((unsigned char *)address - own_memory[0]) / OWN_BYTES] = 0;
    }
}
#endif

static unsigned char *kept;

__attribute__((constructor)) static void come(void) {
    kept = malloc(1000);
    memset(kept, 77, 1000);
}

__attribute__((destructor)) static void go(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    free(kept);
    (void)nanosleep(&pause, NULL);
}

/* A sum of `seed` over blocks: comings.c knows it, too. */
__attribute__((visibility("default"))) uint64_t library_sum(uint64_t seed);
uint64_t library_sum(uint64_t seed) {
    uint64_t *blocks[16];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 16; i++) {
        blocks[i] = malloc(100 + (size_t)i * 50);
        *blocks[i] = seed * i + kept[i];
    }
    for (uint32_t i = 0; i < 16; i++) {
        sum += *blocks[i];
        free(blocks[i]);
    }
    return sum;
}
