/* Which process of one dump is which of another. Room: tools. Context: one thread.
 *
 * One rule: the same pid with the same name is the same process (two dumps of one run); else the
 * same role and command line (two runs); else the first process with the first one, and the same
 * role and arguments whatever the program is called (two builds). Each process once, in the dumps'
 * order. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_PROCESS_PAIRS_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_PROCESS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/analyzer/model/profile.h"

/* Places in the profiles; SIZE_MAX: the other dump alone has it. */
struct ml_process_pair {
    size_t before, after;
};

/* Every process of both, in the order of `after`, then what `before` alone has. `before` NULL:
 * there is none. Owner: *out_pairs is the caller's, for free(). False: no memory. */
bool ml_process_pairs(
    const struct ml_profile *before,
    const struct ml_profile *after,
    struct ml_process_pair **out_pairs,
    size_t *out_count
);

#endif
