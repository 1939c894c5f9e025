#include "tools/analyzer/model/string_table.h"

#include <stdlib.h>
#include <string.h>

void ml_string_table_fini(struct ml_string_table *table) {
    free(table->strings);
    ml_index_fini(&table->index);
    ml_arena_fini(&table->arena);
    *table = (struct ml_string_table){0};
}

static uint32_t
find(const struct ml_string_table *table, uint64_t hash, const char *bytes, size_t count_bytes) {
    size_t at = 0;

    for (uint32_t item = ml_index_first(&table->index, hash, &at); item < table->count;
         item = ml_index_next(&table->index, hash, &at)) {
        const struct ml_profile_text *string = &table->strings[item];
        if (string->count_bytes == count_bytes && memcmp(string->bytes, bytes, count_bytes) == 0) {
            return item;
        }
    }
    return ML_STRING_NONE;
}

static uint32_t
append(struct ml_string_table *table, uint64_t hash, const char *bytes, size_t count_bytes) {
    if (!ML_GROW(table->strings, table->capacity, table->count + 1) ||
        !ml_index_add(&table->index, hash, (uint32_t)table->count)) {
        return ML_STRING_NONE;
    }
    table->strings[table->count] =
        (struct ml_profile_text){.bytes = bytes, .count_bytes = count_bytes};
    return (uint32_t)table->count++;
}

uint32_t ml_string_table_add(struct ml_string_table *table, const char *bytes, size_t count_bytes) {
    uint64_t hash = ml_hash(0, bytes, count_bytes);
    uint32_t known = find(table, hash, bytes, count_bytes);

    return known != ML_STRING_NONE ? known : append(table, hash, bytes, count_bytes);
}

uint32_t
ml_string_table_copy(struct ml_string_table *table, const char *bytes, size_t count_bytes) {
    uint64_t hash = ml_hash(0, bytes, count_bytes);
    uint32_t known = find(table, hash, bytes, count_bytes);
    const char *copy = NULL;

    if (known != ML_STRING_NONE) {
        return known;
    }
    copy = ml_arena_text(&table->arena, bytes, count_bytes);
    return copy ? append(table, hash, copy, count_bytes) : ML_STRING_NONE;
}
