/* Who asked for a stack's blocks: its innermost function that is the program's own, neither the C
 * or C++ library's nor one that hands memory on for others
 * (tools/analyzer/stacks/allocator_frames.h). Room: tools. Context: one thread.
 *
 * One rule: a name that says nothing about who wanted the memory is nobody's. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_ATTRIBUTION_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/stacks/stacks.h"

struct ml_attribution {
    uint32_t node; /* ML_STACKS_NONE: there is no stack */
    size_t symbol; /* which of its place's functions; innermost first */
    bool is_named; /* false: the next best, such as an address or an allocator */
};

/* The attribution of the stack that ends there. A few frames without a name are passed over for a
 * caller that has one; behind more of them its name would be too far from the block to tell of it,
 * then the innermost of them stands for it. */
struct ml_attribution ml_attribution_find(const struct ml_stacks *stacks, uint32_t node);

/* Whether the code lies in a file that every program has: the C and C++ library and their loader.
 */
bool ml_attribution_is_common(const struct ml_code_file *file);
bool ml_attribution_is_common_name(const char *base_name);

#endif
