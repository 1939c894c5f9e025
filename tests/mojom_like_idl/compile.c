#include "tests/mojom_like_idl/compile.h"

#include <stdio.h>
#include <stdlib.h>

#include "mojom_like_idl/idlc/checker.h"
#include "mojom_like_idl/idlc/emit.h"
#include "mojom_like_idl/idlc/parser.h"

typedef void (*emit_function
)(struct source *source, const struct contract *contract, const char *include_path, FILE *out);

static char *emitted(struct source *source, const struct contract *contract, emit_function write) {
    char *text = NULL;
    size_t count_bytes = 0;
    FILE *out = open_memstream(&text, &count_bytes);
    if (out == NULL) {
        abort();
    }
    write(source, contract, GOLDEN_INCLUDE, out);
    (void)fclose(out);
    char *copy = pool_copy(source->pool, text, count_bytes);
    free(text);
    return copy;
}

struct compiled compile(struct pool *pool, const char *name, const char *text) {
    struct source source = {.pool = pool, .name = name, .text = text};
    struct compiled compiled = {0};
    struct contract *contract = parser_read(&source);
    if (contract != NULL) {
        checker_run(&source, contract);
    }
    if (!source.failed) {
        compiled.header = emitted(&source, contract, emit_header);
        compiled.tables = emitted(&source, contract, emit_tables);
    }
    if (source.failed) {
        compiled = (struct compiled){.error = source.error};
    }
    return compiled;
}

char *read_text(struct pool *pool, const char *path) {
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        return NULL;
    }
    enum { SIZE_MAX_BYTES = 1 << 20 };
    char *text = pool_take(pool, SIZE_MAX_BYTES);
    const size_t count_bytes = fread(text, 1, SIZE_MAX_BYTES - 1, in);
    (void)fclose(in);
    text[count_bytes] = 0;
    return text;
}
