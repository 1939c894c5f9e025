/* Pairs the files of two dumps. Room: tools. Context: one thread.
 *
 * One rule: files are equal by build id, else by name, else by their part. The part is the main
 * program of two paired processes (tools/analyzer/stacks/process_pairs.h), or a shared library of
 * another version (the text behind its `.so`). Two files of one dump are never paired by part. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_MODULE_PAIRS_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_MODULE_PAIRS_H

#include "tools/analyzer/stacks/stacks.h"

/* For each file of `to` the name of its pair in `from`, without folder; without a pair its own.
 * NULL: no memory. Owner: the caller frees the array; the texts are the stacks'. */
const char **ml_module_names(const struct ml_stacks *from, const struct ml_stacks *to);

#endif
