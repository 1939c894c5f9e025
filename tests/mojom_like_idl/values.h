/* Values of any message, by its table: at random, and compared. Room: tests. */
#ifndef MEMLOG_TESTS_MOJOM_LIKE_IDL_VALUES_H
#define MEMLOG_TESTS_MOJOM_LIKE_IDL_VALUES_H

#include "mojom_like_idl/idlc/pool.h"
#include "mojom_like_idl/runtime/layout.h"

struct values {
    struct pool *pool;
    uint64_t state;     /* of the random numbers; not 0 */
    uint32_t count_max; /* entries of an array or map, bytes of a string, whatever their limits */
};

/* A permitted value for `to`, zeroed before. Descriptors are numbers from 100 on. */
void values_random(struct values *values, const struct ml_layout *layout, void *to);

/* The same value? Absent ones are not looked at. */
bool values_equal(const struct ml_layout *layout, const void *a, const void *b);

#endif
