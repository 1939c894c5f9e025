/* write_synthetic FILE [PROCESSES [NODES [CELLS [PLACES]]]]: write a dump of made-up processes.
 *
 * PLACES is a file that says what their frames are of, a line each: a program's path, its build id
 * in hex, then ELF addresses in hex. Without it they are of no existing file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/snapshot/snapshot.h"
#include "tests/dump/synthetic.h"
#include "tools/analyzer/model/memory.h"

static uint32_t number(int argc, char **argv, int at, uint32_t otherwise) {
    return at < argc ? (uint32_t)strtoul(argv[at], NULL, 10) : otherwise;
}

/* A line's text, in the arena; "" behind the last. */
static char *line_of(FILE *file, struct ml_arena *arena) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t count = getline(&line, &capacity, file);
    char *kept = ml_arena_text(arena, count > 0 ? line : "", count > 0 ? strcspn(line, "\n") : 0);

    free(line);
    return kept;
}

static void
places_read(const char *path, struct ml_arena *arena, struct synthetic_options *options) {
    FILE *file = fopen(path, "r");
    const char *hex = NULL;
    uint8_t *build_id = NULL;
    uint64_t *offsets = NULL;
    size_t capacity = 0;
    uint64_t offset = 0;

    if (!file) {
        perror(path);
        exit(1);
    }
    options->module_path = line_of(file, arena);
    hex = line_of(file, arena);
    options->build_id_bytes = strlen(hex) / 2;
    build_id = ml_arena_take(arena, options->build_id_bytes + 1);
    for (size_t i = 0; i < options->build_id_bytes; i++) {
        unsigned byte = 0;
        (void)sscanf(hex + 2 * i, "%2x", &byte);
        build_id[i] = (uint8_t)byte;
    }
    while (fscanf(file, "%" SCNx64, &offset) == 1 &&
           ML_GROW(offsets, capacity, options->offsets_count + 1)) {
        offsets[options->offsets_count++] = offset;
    }
    fclose(file);
    options->build_id = build_id;
    options->offsets = offsets; /* until the end */
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
        fprintf(stderr, "usage: %s FILE [PROCESSES [NODES [CELLS [PLACES]]]]\n", argv[0]);
        return 2;
    }
    if (argc > 5) {
        places_read(argv[5], &arena, &options);
    }
    from = synthetic_dump(synthetic_snapshot(&arena, &options));
    for (byte = getc(from); byte != EOF; byte = getc(from)) {
        putc(byte, to);
    }
    fclose(from);
    ml_arena_fini(&arena);
    return fclose(to) == 0 ? 0 : 1;
}
