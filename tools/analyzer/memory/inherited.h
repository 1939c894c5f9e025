/* Who mapped what a forked child has from its parent. Room: tools. Context: one thread.
 *
 * One rule: a child's holding without a stack is its ancestor's where that has the same address
 * mapped by one stack alone. Of several stacks none is chosen. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_INHERITED_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_INHERITED_H

#include <stddef.h>

#include "tools/analyzer/model/profile.h"

enum { ML_ANCESTORS_MAX = 8 };

/* The processes that one was forked from, the nearest first. */
struct ml_ancestors {
    const struct ml_profile_process *processes[ML_ANCESTORS_MAX];
    size_t count;
};

/* They run the same program: what was mapped before an exec is gone. */
struct ml_ancestors
ml_ancestors_of(const struct ml_profile *profile, const struct ml_profile_process *process);

/* The holding of an ancestor for that of the child. NULL: there is none. *out_of: whose it is. */
const struct ml_profile_region_holding *ml_inherited_holding(
    const struct ml_ancestors *ancestors,
    const struct ml_profile_process *process,
    const struct ml_profile_region_holding *holding,
    const struct ml_profile_process **out_of
);

#endif
