/* bench-tight PAIRS: nothing but malloc and free from one place, random victims among 2,000 live
 * blocks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/programs/random.h"

enum { LIVE = 2000 };

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "bench-tight PAIRS\n");
        return 2;
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
