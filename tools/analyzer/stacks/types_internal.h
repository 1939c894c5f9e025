/* What types by frames and types by vtables share. Room: tools. Context: one thread. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_TYPES_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_TYPES_INTERNAL_H

#include "tools/analyzer/stacks/types.h"

/* Let the process have a list of details; where malloc's heap was all there is, that of its stacks.
 * False: no memory. */
bool ml_stacks_make_details(struct ml_stacks *stacks, size_t number);

#endif
