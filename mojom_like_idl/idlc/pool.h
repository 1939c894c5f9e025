/* Memory of one run of idlc: taken piece by piece, freed all at once. Room: mojom_like_idl (idlc).
 *
 * One rule: memory from a pool is never freed singly. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_POOL_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_POOL_H

#include <stddef.h>

struct pool_piece;

struct pool {
    struct pool_piece *pieces;
};

/* Zeroed memory. Without memory the program ends: a compiler has nothing better to do. */
void *pool_take(struct pool *pool, size_t count_bytes);

/* A formatted, 0-terminated text. */
char *pool_print(struct pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `count_bytes` bytes as a 0-terminated text. */
char *pool_copy(struct pool *pool, const char *text, size_t count_bytes);

void pool_fini(struct pool *pool);

#endif
