/* bench-deep PAIRS: each malloc under 45 frames, by one of 5,000 paths; random victims among 2,000
 * live blocks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/programs/descend.h"
#include "tools/bench/programs/random.h"

enum { LIVE = 2000, PATHS = 5000, DEPTH = 45 };

struct work {
    uint64_t random;
    void *live[LIVE];
};

static void replace(void *context) {
    struct work *work = context;
    void **victim = &work->live[work->random % LIVE];
    free(*victim);
    *victim = malloc(ml_bench_size(work->random));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "bench-deep PAIRS\n");
        return 2;
    }
    static struct work work;
    struct ml_descent descent = {.leaf = replace, .context = &work};
    const uint64_t pairs = strtoull(argv[1], NULL, 10);
    uint64_t state = 1;
    for (uint64_t i = 0; i < pairs; i++) {
        work.random = ml_bench_random(&state);
        descent.path = (uint32_t)(work.random >> 32) % PATHS;
        ml_descend(&descent, DEPTH);
    }
    for (size_t i = 0; i < LIVE; i++) {
        free(work.live[i]);
    }
    return 0;
}
