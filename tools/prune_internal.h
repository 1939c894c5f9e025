/* What prune.c and prune_worth.c share. Room: tools (private). */
#ifndef MEMLOG_TOOLS_PRUNE_INTERNAL_H
#define MEMLOG_TOOLS_PRUNE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/stacks.h"

/* Whether it holds, or held at a peak, that much or so many. */
bool ml_prune_keeps_size(const struct ml_stack *stack, uint64_t below_bytes, uint64_t kept_blocks);

/* Fold what does not stay. False: no memory. */
bool ml_prune_fold(struct ml_stacks *stacks, struct ml_stack_list *list, const bool *stays_here);

#endif
