/* stack_use: how many bytes of its stack a thread has touched that does nothing but call the
 * allocator, from a few frames down. The stack is painted beforehand, so that whatever was written
 * there shows, however briefly. */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 256 << 10, PAINT = 0x5a, BLOCKS = 300, DEPTH = 12 };

/* Not optimised away. */
static void *volatile blocks[BLOCKS];

static void call_everything(void) {
    for (int i = 0; i < BLOCKS; i++) {
        const size_t bytes = 16 + 41 * (size_t)i;
        blocks[i] = i % 3 == 0 ? malloc(bytes) : calloc(1, bytes);
        blocks[i] = realloc(blocks[i], 2 * bytes);
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
        blocks[i] = aligned_alloc(64, 64 * (1 + (size_t)i));
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
}

__attribute__((noinline)) static int go_down(int depth) {
    volatile int kept = depth;
    if (depth == 0) {
        call_everything();
        return 0;
    }
    return go_down(depth - 1) + kept;
}

static void *run(void *context) {
    (void)go_down(DEPTH);
    return context;
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    uint8_t *stack = mmap(
        NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0
    );
    if (stack == MAP_FAILED) {
        return 1;
    }
    memset(stack, PAINT, STACK_BYTES);
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstack(&attributes, stack, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, run, NULL) != 0 || pthread_join(thread, NULL) != 0) {
        return 1;
    }
    size_t untouched = 0;
    while (untouched < STACK_BYTES && stack[untouched] == PAINT) {
        untouched++;
    }
    printf("%zu\n", STACK_BYTES - untouched);
    return 0;
}
