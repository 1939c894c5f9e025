/* idlc: a .mojom contract in, a C header and its tables out. Room: mojom_like_idl (idlc).
 *
 *   idlc NAME INPUT INCLUDE_PATH OUT_HEADER OUT_TABLES
 *
 * NAME is how errors and outputs call the input, INCLUDE_PATH how C files include the header. One
 * rule: nothing is written unless everything is right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mojom_like_idl/idlc/checker.h"
#include "mojom_like_idl/idlc/emit.h"
#include "mojom_like_idl/idlc/parser.h"

/* The whole file, 0-terminated; NULL: errno says why. */
static char *read_file(struct pool *pool, const char *path, size_t *out_count_bytes) {
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        return NULL;
    }
    char *text = NULL;
    size_t count_bytes = 0;
    FILE *out = open_memstream(&text, &count_bytes);
    int c = fgetc(in);
    while (out != NULL && c != EOF) {
        (void)fputc(c, out);
        c = fgetc(in);
    }
    const int failed = ferror(in);
    (void)fclose(in);
    if (out == NULL || fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    char *copy = pool_copy(pool, text, count_bytes);
    free(text);
    *out_count_bytes = count_bytes;
    return copy;
}

static int write_file(const char *path, const char *text) {
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

typedef void (*emit_function
)(struct source *source, const struct contract *contract, const char *include_path, FILE *out);

static char *emitted(
    struct source *source,
    const struct contract *contract,
    const char *include_path,
    emit_function write
) {
    char *text = NULL;
    size_t count_bytes = 0;
    FILE *out = open_memstream(&text, &count_bytes);
    if (out == NULL) {
        return NULL;
    }
    write(source, contract, include_path, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    char *copy = pool_copy(source->pool, text, count_bytes);
    free(text);
    return copy;
}

static int compile(struct pool *pool, char **args) {
    struct source source = {.pool = pool, .name = args[0]};
    source.text = read_file(pool, args[1], &source.text_bytes);
    if (source.text == NULL) {
        perror(args[1]);
        return 1;
    }
    struct contract *contract = parser_read(&source);
    if (contract != NULL) {
        checker_run(&source, contract);
    }
    const char *header = NULL;
    const char *tables = NULL;
    if (!source.failed) {
        header = emitted(&source, contract, args[2], emit_header);
        tables = emitted(&source, contract, args[2], emit_tables);
    }
    if (source.failed) {
        (void)fprintf(stderr, "%s\n", source.error);
        return 1;
    }
    if (header == NULL || tables == NULL) {
        perror("idlc");
        return 1;
    }
    return write_file(args[3], header) != 0 || write_file(args[4], tables) != 0;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        (void)fputs("usage: idlc NAME INPUT INCLUDE_PATH OUT_HEADER OUT_TABLES\n", stderr);
        return 2;
    }
    struct pool pool = {0};
    const int code = compile(&pool, argv + 1);
    pool_fini(&pool);
    return code;
}
