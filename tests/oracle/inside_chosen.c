/* An allocator whose je_free the program chooses as it starts: hooks of its other functions would
 * see blocks come that never go. Room: tests. Context: one thread. */
#include <sched.h>
#include <stddef.h>

enum { HEAP_BYTES = 1 << 16, BLOCK_BYTES = 128, BLOCKS = 9 };

void *je_malloc(size_t size);
void je_dallocx(void *block, int flags);
void je_free(void *block);

static char heap[HEAP_BYTES] __attribute__((aligned(16)));
static size_t used;
static volatile size_t released;

void *je_malloc(size_t size) {
    char *block = heap + used;
    (void)sched_yield(); /* else its callers know it whole */
    used += size;
    return block;
}

void je_dallocx(void *block, int flags) {
    (void)sched_yield();
    released += block != NULL && flags == 0;
}

static void release(void *block) {
    released += block != NULL;
}

__attribute__((used)) static void (*choose(void))(void *) {
    return release;
}

void je_free(void *block) __attribute__((ifunc("choose")));

int main(void) {
    for (int i = 0; i < BLOCKS; i++) {
        je_free(je_malloc(BLOCK_BYTES));
    }
    return released == BLOCKS ? 0 : 1;
}
