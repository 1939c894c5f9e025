#include "tools/analyzer/model/search.h"

#include <string.h>

static uint64_t key_at(const struct ml_keys *keys, size_t place) {
    uint64_t key = 0;

    memcpy(
        &key,
        (const unsigned char *)keys->items + place * keys->item_bytes + keys->offset_bytes,
        sizeof key
    );
    return key;
}

size_t ml_keys_below(struct ml_keys keys, uint64_t key) {
    size_t low = 0;
    size_t high = keys.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (key_at(&keys, middle) < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t ml_keys_until(struct ml_keys keys, uint64_t key) {
    return key == UINT64_MAX ? keys.count : ml_keys_below(keys, key + 1);
}
