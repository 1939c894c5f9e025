/* Random values of any message, by its table, and their comparison. Room: tests. */
#ifndef MEMLOG_TESTS_MOJOM_LIKE_IDL_VALUES_H
#define MEMLOG_TESTS_MOJOM_LIKE_IDL_VALUES_H

#include "mojom_like_idl/idlc/pool.h"
#include "mojom_like_idl/runtime/layout.h"

struct values {
    struct pool *pool;
    uint64_t state; /* of the random numbers; not 0 */
    uint32_t
        count_max; /* most entries of an array or map, and bytes of a string; limits may be lower */
};

/* A permitted value for `to`, zeroed before. Descriptors are numbers from 100 on. */
void values_random(struct values *values, const struct ml_layout *layout, void *to);

/* Whether the values are the same. Absent fields are not compared. */
bool values_equal(const struct ml_layout *layout, const void *a, const void *b);

#endif
