/* What the modules of pruning share. Room: tools (private). */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/stacks/stacks.h"

/* Whether the stack has so many bytes or ML_PRUNE_KEPT_BLOCKS blocks, live or at a peak. */
bool ml_prune_keeps_size(const struct ml_stack *stack, uint64_t below_bytes);

uint64_t ml_prune_stack_worth(const struct ml_stack *stack);

/* Whether ml_prune_by_function made that node. */
bool ml_prune_is_by_function(const struct ml_stacks *stacks, uint32_t node);

/* Merge the stacks that do not stay by their attributed function, where all stacks of the function
 * are worth `least_worth` together. The merged ones stay. False: no memory. */
bool ml_prune_by_function(
    struct ml_stacks *stacks, struct ml_stack_list *list, bool *stays_here, uint64_t least_worth
);

/* Fold what does not stay. False: no memory. */
bool ml_prune_fold(struct ml_stacks *stacks, struct ml_stack_list *list, const bool *stays_here);

/* Give the stacks of all lists the new numbers of their nodes. */
void ml_prune_renumber(struct ml_stacks *stacks, const uint32_t *numbers);

#endif
