/* write_synthetic FILE [PROCESSES [NODES [CELLS]]]: a dump of made-up processes. */
#include <stdio.h>
#include <stdlib.h>

#include "service/snapshot.h"
#include "tests/dump/synthetic.h"
#include "tools/memory.h"

static uint32_t number(int argc, char **argv, int at, uint32_t otherwise) {
    return at < argc ? (uint32_t)strtoul(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv) {
    struct ml_arena arena = {0};
    struct synthetic_options options = {
        .processes_count = number(argc, argv, 2, 3),
        .nodes_count = number(argc, argv, 3, 300),
        .cells_count = number(argc, argv, 4, 500),
    };
    FILE *to = argc > 1 ? fopen(argv[1], "w") : NULL;
    FILE *from = NULL;
    int byte = 0;

    if (!to) {
        fprintf(stderr, "usage: %s FILE [PROCESSES [NODES [CELLS]]]\n", argv[0]);
        return 2;
    }
    from = synthetic_dump(synthetic_snapshot(&arena, &options));
    for (byte = getc(from); byte != EOF; byte = getc(from)) {
        putc(byte, to);
    }
    fclose(from);
    ml_arena_fini(&arena);
    return fclose(to) == 0 ? 0 : 1;
}
