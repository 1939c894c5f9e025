#include "mojom_like_idl/idlc/pool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pool_piece {
    struct pool_piece *next;
    _Alignas(16) char bytes[];
};

void *pool_take(struct pool *pool, size_t count_bytes) {
    struct pool_piece *piece = calloc(1, sizeof(*piece) + count_bytes);
    if (piece == NULL) {
        fputs("idlc: no memory\n", stderr);
        exit(1);
    }
    piece->next = pool->pieces;
    pool->pieces = piece;
    return piece->bytes;
}

char *pool_print(struct pool *pool, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = pool_take(pool, (size_t)length + 1);
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

char *pool_copy(struct pool *pool, const char *text, size_t count_bytes) {
    char *copy = pool_take(pool, count_bytes + 1);
    memcpy(copy, text, count_bytes);
    return copy;
}

void pool_fini(struct pool *pool) {
    while (pool->pieces != NULL) {
        struct pool_piece *next = pool->pieces->next;
        free(pool->pieces);
        pool->pieces = next;
    }
}
