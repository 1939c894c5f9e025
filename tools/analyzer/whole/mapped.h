/* Whose the mapped memory of processes is: names of run-times' heaps in place of "mapped". Room:
 * tools. Context: one thread.
 *
 * One rule: the names are policy l1's. What that has no name for stays "mapped". */
#ifndef MEMLOG_TOOLS_ANALYZER_WHOLE_MAPPED_H
#define MEMLOG_TOOLS_ANALYZER_WHOLE_MAPPED_H

#include "tools/analyzer/memory/policy.h"
#include "tools/analyzer/stacks/stacks.h"
#include "tools/analyzer/whole/whole.h"

struct ml_mapped_names {
    const struct ml_stacks *stacks;
    struct ml_policy policy;
    struct ml_row_text *text; /* NULL: no memory, nothing gets a name */
};

/* Stacks with their names looked up. _fini is needed. */
void ml_mapped_names_init(struct ml_mapped_names *names, const struct ml_stacks *stacks);
void ml_mapped_names_fini(struct ml_mapped_names *names);

/* Name the mapped memory of a process that was added to the whole. Little of it gets no name. */
void ml_mapped_names_add(
    struct ml_mapped_names *names, struct ml_whole *whole, const struct ml_profile_process *process
);

#endif
