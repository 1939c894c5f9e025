/* Two dumps, stack by stack. Room: tools. Context: one thread.
 *
 * One rule: a stack is told by its functions and the files that they are in, not by addresses: the
 * dumps may come from two builds, and a file may be called otherwise in the other
 * (tools/analyzer/stacks/module_pairs.h). Frames without names are told by file and address. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_DIFF_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

enum ml_diff_side { ML_DIFF_FROM = 0, ML_DIFF_TO = 1, ML_DIFF_SIDES = 2 };

struct ml_diff_stack {
    struct ml_profile_totals
        sides[ML_DIFF_SIDES]; /* of the trees; peak: shares of the tree's peak */
    enum ml_diff_side side;   /* whose `node` it is */
    uint32_t node;            /* one of the stacks; ML_STACKS_NONE: no stack */
};

/* Every stack that either has. */
struct ml_diff {
    struct ml_diff_stack *stacks;
    size_t count, capacity;
};

/* Compare. The stacks must have their names. Errors: ML_ENV_MEMORY; then _fini is still allowed. */
ML_NODISCARD enum ml_status
ml_diff_init(struct ml_diff *diff, const struct ml_stacks *from, const struct ml_stacks *to);
void ml_diff_fini(struct ml_diff *diff);

#endif
