/* idlc as a function, for its tests and for regen_golden. Room: tests. */
#ifndef MEMLOG_TESTS_MOJOM_LIKE_IDL_COMPILE_H
#define MEMLOG_TESTS_MOJOM_LIKE_IDL_COMPILE_H

#include "mojom_like_idl/idlc/pool.h"

struct compiled {
    const char *error;  /* NULL: it compiled */
    const char *header; /* NULL on an error */
    const char *tables;
};

/* Compile a text as if it stood in the file `name`; texts are the pool's. */
struct compiled compile(struct pool *pool, const char *name, const char *text);

/* The golden contract, and what idlc makes of it; the working directory is the root of the tree. */
#define GOLDEN_NAME "tests/mojom_like_idl/golden/example.mojom"
#define GOLDEN_INCLUDE "tests/mojom_like_idl/golden/example_mojom.h"

/* Not named as C: they are texts to compare, and are never included. */
#define GOLDEN_HEADER "tests/mojom_like_idl/golden/example_mojom.h.txt"
#define GOLDEN_TABLES "tests/mojom_like_idl/golden/example_mojom.c.txt"

/* A whole file; NULL: it cannot be read. */
char *read_text(struct pool *pool, const char *path);

#endif
