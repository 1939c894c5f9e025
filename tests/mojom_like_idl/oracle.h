/* Checks our encoder with msgpack-c's own unpacker. Room: tests. */
#ifndef MEMLOG_TESTS_MOJOM_LIKE_IDL_ORACLE_H
#define MEMLOG_TESTS_MOJOM_LIKE_IDL_ORACLE_H

#include "mojom_like_idl/runtime/layout.h"

/* Whether msgpack-c reads this value in these bytes, and nothing behind it. */
bool oracle_agrees(
    const struct ml_layout *layout, const void *value, const void *body, size_t body_bytes
);

#endif
