/* Write the golden outputs anew: regen_golden ROOT. Whoever runs it reads the diff. Room: tests. */
#include <stdio.h>
#include <unistd.h>

#include "tests/mojom_like_idl/compile.h"
#include "tests/mojom_like_idl/samples.h"

static int write_text(const char *path, const char *text) {
    FILE *out = fopen(path, "wb");
    if (out == NULL) {
        perror(path);
        return 1;
    }
    const int failed = fputs(text, out) < 0;
    if (fclose(out) != 0 || failed) {
        perror(path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2 || chdir(argv[1]) != 0) {
        (void)fputs("usage: regen_golden ROOT\n", stderr);
        return 2;
    }
    struct pool pool = {0};
    int failed = 1;
    const char *text = read_text(&pool, GOLDEN_NAME);
    if (text == NULL) {
        perror(GOLDEN_NAME);
    } else {
        const struct compiled compiled = compile(&pool, GOLDEN_NAME, text);
        if (compiled.error != NULL) {
            (void)fprintf(stderr, "%s\n", compiled.error);
        } else {
            failed = write_text(GOLDEN_HEADER, compiled.header) != 0 ||
                     write_text(GOLDEN_TABLES, compiled.tables) != 0 ||
                     write_text(SAMPLES_PATH, samples_text(&pool)) != 0;
        }
    }
    pool_fini(&pool);
    return failed;
}
