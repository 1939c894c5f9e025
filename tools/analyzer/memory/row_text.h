/* What the patterns of a policy see of a row's stack. Room: tools. Context: one thread.
 *
 * One rule: as in dmprof the frames are joined by blanks, the innermost first, and functions are
 * bare: without return type, parameters and template arguments. A frame without a name is its
 * module and offset. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_ROW_TEXT_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_ROW_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/memory/rows.h"
#include "tools/analyzer/stacks/stacks.h"

enum { ML_ROW_TEXT_BYTES = 65536 };

struct ml_row_text {
    uint32_t node; /* whose texts these are; ML_STACKS_NONE: they are empty */
    char functions[ML_ROW_TEXT_BYTES];
    char files[ML_ROW_TEXT_BYTES];   /* source files */
    char modules[ML_ROW_TEXT_BYTES]; /* ELF files */
};

/* A text of no stack. NULL: no memory. Owner: free. */
struct ml_row_text *ml_row_text_new(void);

/* Make the texts of a node, unless they are its already. What is too long is cut at its outermost
 * end. */
void ml_row_text_make(struct ml_row_text *text, const struct ml_stacks *stacks, uint32_t node);

/* "v8::internal::Heap::SetUp" of "bool v8::internal::Heap<int>::SetUp(int) const". */
void ml_row_text_bare(const char *function, char *out_name, size_t out_bytes);

/* The file name of the library or program that a row is of: that of the function which needs the
 * memory, else of the mapped file. "": neither is known. */
const char *ml_row_module(const struct ml_stacks *stacks, const struct ml_row *row);

#endif
