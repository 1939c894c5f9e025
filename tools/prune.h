/* Stacks that hold little, left out. Room: tools. Context: one thread.
 *
 * One rule: every sum stays. What is left out is folded into a frame `<other>` below its nearest
 * caller that is on the way to a stack that stays. */
#ifndef MEMLOG_TOOLS_PRUNE_H
#define MEMLOG_TOOLS_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/ml_status.h"
#include "tools/stacks.h"

/* A stack stays that holds or held at a peak at least this many blocks, however small; Chromium's
 * figure for its uploads. */
enum { ML_PRUNE_KEPT_BLOCKS = 1024 };

/* Leave out, in each process's list and in the tree's for itself, the stacks that hold less than
 * `below_bytes`, live and at the peak, and fewer blocks than ML_PRUNE_KEPT_BLOCKS. Places and nodes
 * that nothing needs any more go, too. 0: nothing is left out.
 *
 * Errors: ML_ENV_MEMORY; then the stacks are good for _fini alone. */
ML_NODISCARD enum ml_status ml_stacks_prune(struct ml_stacks *stacks, uint64_t below_bytes);

/* Let go of the nodes and places that no list needs. Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_forget(struct ml_stacks *stacks);

/* The same, where `kept_blocks` stands for ML_PRUNE_KEPT_BLOCKS. May be called again with larger
 * figures. */
ML_NODISCARD enum ml_status
ml_stacks_prune_to(struct ml_stacks *stacks, uint64_t below_bytes, uint64_t kept_blocks);

/* Keep, in each list, the stacks that are worth at least `least_worth` for every byte that they add
 * to a body: a stack's worth is what it holds, its price its callers that no larger stack has
 * brought already. The stack that a trigger blames always stays. Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_prune_to_worth(struct ml_stacks *stacks, double least_worth);

/* Make one of what reads alike: places of the same functions, whatever address and line they are
 * of. For forms that show functions alone; the figures of stacks that are equal then add up.
 * Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_merge_functions(struct ml_stacks *stacks);

/* Keep the innermost `frames` frames of each stack; what stood further out becomes one frame "left
 * out". Stacks that are equal then are one: every sum stays. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_stacks_shorten(struct ml_stacks *stacks, uint32_t frames);

/* Stacks as they were, to prune them in another way. */
struct ml_stacks_copy {
    struct ml_stack_node *nodes;
    struct ml_place *places;
    struct ml_stack *stacks; /* the tree's, then each process's */
    size_t *counts;          /* of each list */
    size_t nodes_count, places_count;
    uint32_t guilty;
};

/* False: no memory; nothing is to be freed then. */
bool ml_stacks_copy_init(struct ml_stacks_copy *copy, const struct ml_stacks *stacks);
void ml_stacks_copy_fini(struct ml_stacks_copy *copy);

/* Make the stacks what they were when the copy was made. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stacks_restore(struct ml_stacks *stacks, const struct ml_stacks_copy *copy);

#endif
