/* Which file of one dump is which of another. Room: tools. Context: one thread.
 *
 * One rule: the same build id is the same file; else the same name; else the same part: the main
 * program of two processes that are a pair (tools/analyzer/stacks/process_pairs.h), a shared
 * library but for the version behind its `.so`. No two files of one dump become one by their part.
 */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_MODULE_PAIRS_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_MODULE_PAIRS_H

#include "tools/analyzer/stacks/stacks.h"

/* What each of to's files is called (without its folder): as the one of `from` that it is. NULL: no
 * memory. The texts are the stacks'; the array is the caller's, for free(). */
const char **ml_module_names(const struct ml_stacks *from, const struct ml_stacks *to);

#endif
