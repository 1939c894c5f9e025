/* Who asked for a stack's blocks: its innermost function that is the program's own, neither the C
 * or C++ library's nor one that hands memory on for others (tools/analyzer/stacks/plumbing.h).
 * Room: tools. Context: one thread.
 *
 * One rule: a name that says nothing about who wanted the memory is nobody's. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_ASKER_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_ASKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/stacks/stacks.h"

struct ml_asker {
    uint32_t node; /* ML_STACKS_NONE: there is no stack */
    size_t symbol; /* which of its place's functions; innermost first */
    bool is_named; /* false: the next best, such as an address or an allocator */
};

/* The asker of the stack that ends there. A few frames without a name are passed over for a caller
 * that has one; behind more of them its name would be too far from the block to tell of it, then
 * the innermost of them stands for the asker. */
struct ml_asker ml_asker_find(const struct ml_stacks *stacks, uint32_t node);

/* Whether the code lies in a file that every program has: the C and C++ library and their loader.
 */
bool ml_asker_is_common(const struct ml_code_file *file);
bool ml_asker_is_common_name(const char *base_name);

#endif
