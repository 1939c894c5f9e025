/* Numbers strings from 0 in the order in which they came, each string once. Most formats refer to
 * such a table. Room: tools. Context: one thread.
 *
 * One rule: a string keeps its number for as long as the table lives. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_STRING_TABLE_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/model/profile.h"

/* Instead of a number: there is no memory. */
#define ML_STRING_NONE ML_INDEX_NONE

/* An empty table is all zero. */
struct ml_string_table {
    struct ml_profile_text *strings; /* of each number */
    size_t count, capacity;
    struct ml_index index;
    struct ml_arena arena; /* the strings that were copied */
};

void ml_string_table_fini(struct ml_string_table *table);

/* The string's number; ML_STRING_NONE without memory. A new one is the table's last, count - 1.
 *
 * Owner: the bytes are borrowed and must live as long as the table. */
uint32_t ml_string_table_add(struct ml_string_table *table, const char *bytes, size_t count_bytes);

/* The same; a new string is copied, with a NUL behind it. */
uint32_t ml_string_table_copy(struct ml_string_table *table, const char *bytes, size_t count_bytes);

#endif
