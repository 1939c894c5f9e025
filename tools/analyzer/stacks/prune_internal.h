/* What the modules of pruning share. Room: tools (private). */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/stacks/stacks.h"

/* Whether it holds, or held at a peak, that much, or ML_PRUNE_KEPT_BLOCKS. */
bool ml_prune_keeps_size(const struct ml_stack *stack, uint64_t below_bytes);

/* What it is worth to know the stack. */
uint64_t ml_prune_stack_worth(const struct ml_stack *stack);

/* Whether it tells of a function alone: what ml_prune_by_function made of it. */
bool ml_prune_is_by_function(const struct ml_stacks *stacks, uint32_t node);

/* Of stacks that do not stay: tell of the function that asked alone, where all of its stacks
 * together are worth at least that much, and have them stay. False: no memory. */
bool ml_prune_by_function(
    struct ml_stacks *stacks, struct ml_stack_list *list, bool *stays_here, uint64_t least_worth
);

/* Fold what does not stay. False: no memory. */
bool ml_prune_fold(struct ml_stacks *stacks, struct ml_stack_list *list, const bool *stays_here);

/* Give each stack the new number of its node. */
void ml_prune_renumber(struct ml_stacks *stacks, const uint32_t *numbers);

#endif
