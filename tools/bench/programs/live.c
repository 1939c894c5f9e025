/* bench-live BLOCKS: that many small blocks live at once, from one place; nothing is freed. What a
 * recorder's memory grows by from one count to another, it needs for blocks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The chain of them all: live to the end. */
static void **newest;

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "bench-live BLOCKS\n");
        return 2;
    }
    const uint64_t blocks = strtoull(argv[1], NULL, 10);
    for (uint64_t i = 0; i < blocks; i++) {
        void **block = malloc(sizeof(void *));
        if (block == NULL) {
            return 1;
        }
        *block = newest;
        newest = block;
    }
    return newest == NULL;
}
