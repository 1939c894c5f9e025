/* Binary search by a number. Room: tools. Context: any thread.
 *
 * One rule: the items are sorted by that key. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_SEARCH_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* The keys of an array's items, an uint64_t in each. */
struct ml_keys {
    const void *items; /* NULL: there is none */
    size_t count;
    size_t item_bytes;
    size_t offset_bytes; /* of the key in its item */
};

/* Where the member is in an item; one that is no uint64_t does not compile. */
#define ML_KEY_OFFSET(array, key) _Generic((array)->key, uint64_t : offsetof(typeof(*(array)), key))

/* The member `key` of each of an array's items. */
#define ML_KEYS(array, length, key)                                                                \
    ((struct ml_keys){                                                                             \
        .items = (array),                                                                          \
        .count = (length),                                                                         \
        .item_bytes = sizeof *(array),                                                             \
        .offset_bytes = ML_KEY_OFFSET(array, key),                                                 \
    })

/* How many keys are less than `key`: the place of the first that is not. */
size_t ml_keys_below(struct ml_keys keys, uint64_t key);

/* How many keys are `key` or less: the place of the first beyond it. */
size_t ml_keys_until(struct ml_keys keys, uint64_t key);

#endif
