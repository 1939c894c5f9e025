/* The attributed function of a stack: the innermost one of the program itself. It is neither of the
 * C or C++ library nor an allocator frame (tools/analyzer/names/allocator_frames.h). Room: tools.
 * Context: one thread.
 *
 * One rule: a name that does not tell who needs the memory is never attributed. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_ATTRIBUTION_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/stacks/stacks.h"

struct ml_attribution {
    uint32_t node; /* ML_STACKS_NONE: there is no stack */
    size_t symbol; /* index into the place's functions, innermost first */
    bool is_named; /* false: a substitute, such as an address or an allocator */
};

/* The attribution of the stack whose innermost node is `node`. A few frames without names are
 * skipped for a caller that has one. Behind many of them a name is too far from the block: then the
 * innermost frame without a name is taken. */
struct ml_attribution ml_attribution_find(const struct ml_stacks *stacks, uint32_t node);

/* Whether the file is one that every program has: the C or C++ library, or the loader. */
bool ml_attribution_is_common(const struct ml_code_file *file);
bool ml_attribution_is_common_name(const char *base_name);

#endif
