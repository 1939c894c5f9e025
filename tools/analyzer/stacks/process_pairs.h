/* Pairs the processes of two dumps. Room: tools. Context: one thread.
 *
 * One rule: two dumps of one run pair by pid and name, two runs by name, role and command line. Two
 * builds pair their first processes, then by role and arguments without the program's name. Each
 * process is in one pair, in the dumps' order. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_PROCESS_PAIRS_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_PROCESS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/analyzer/model/profile.h"

/* Indices into the profiles; SIZE_MAX: only the other dump has the process. */
struct ml_process_pair {
    size_t before, after;
};

/* All processes in the order of `after`, then those that only `before` has. `before` may be NULL.
 * Owner: the caller frees *out_pairs. False: no memory. */
bool ml_process_pairs(
    const struct ml_profile *before,
    const struct ml_profile *after,
    struct ml_process_pair **out_pairs,
    size_t *out_count
);

#endif
