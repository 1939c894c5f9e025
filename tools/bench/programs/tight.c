/* bench-tight PAIRS [wait]: nothing but malloc and free from one place, random victims among 2,000
 * live blocks; behind the first byte of its input, if it is to wait. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/programs/random.h"

enum { LIVE = 2000 };

int main(int argc, char **argv) {
    const int waits = argc == 3 && strcmp(argv[2], "wait") == 0;
    char byte = 0;
    if (argc != 2 && !waits) {
        fprintf(stderr, "bench-tight PAIRS [wait]\n");
        return 2;
    }
    if (waits && read(STDIN_FILENO, &byte, 1) != 1) {
        return 1;
    }
    static void *live[LIVE];
    const uint64_t pairs = strtoull(argv[1], NULL, 10);
    uint64_t state = 1;
    for (uint64_t i = 0; i < pairs; i++) {
        const uint64_t random = ml_bench_random(&state);
        void **victim = &live[random % LIVE];
        free(*victim);
        *victim = malloc(ml_bench_size(random));
    }
    for (size_t i = 0; i < LIVE; i++) {
        free(live[i]);
    }
    return 0;
}
