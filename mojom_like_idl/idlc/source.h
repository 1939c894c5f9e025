/* One .mojom file and the first thing found wrong with it. Room: mojom_like_idl (idlc).
 *
 * One rule: only the first error is kept; every phase stops soon after `failed` is set. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_SOURCE_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_SOURCE_H

#include <stdbool.h>

#include "mojom_like_idl/idlc/pool.h"

/* Where something stands; both counted from 1. */
struct place {
    int line;
    int column;
};

struct source {
    struct pool *pool;
    const char *name;  /* as errors and outputs call the file */
    const char *text;  /* 0-terminated ... */
    size_t text_bytes; /* ... and this long: a 0 within is an error. 0: up to the first 0 */
    bool failed;
    char *error; /* "name:line:column: error: ...", once failed */
};

/* Note an error, if it is the first. Says what was expected, and what is there. */
void source_error(struct source *source, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
