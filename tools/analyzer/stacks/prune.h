/* Stacks that hold little, left out. Room: tools. Context: one thread.
 *
 * One rule: every sum stays. What is left out is folded into a frame `<other>` below its nearest
 * caller that is on the way to a stack that stays. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/stacks/stacks.h"

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

/* Which stacks stay: those that are worth at least `least_worth` for every byte that they add to a
 * body (a stack's worth is what it holds, its price its callers that no larger stack has brought
 * already), and, if `below_bytes` is not 0, those that ml_stacks_prune keeps. The stack that a
 * trigger blames always stays, and the one that is worth most. What a rule with less worth keeps is
 * all that one with more keeps, and more.
 *
 * Many small stacks of one function can be a large share: if `function_worth` is not 0 and all
 * stacks of the function that asked (tools/analyzer/stacks/attribution.h) are worth that much
 * together, those of them that do not stay are told as one, `<other>` and the function. */
struct ml_prune_rule {
    double least_worth;
    uint64_t below_bytes;
    uint64_t function_worth;
    /* So many of those stay, too, that are worth at least this; of the tree's list as many. */
    double margin_worth;
    uint64_t margin_count;
};

/* Fold, in each list, what does not stay. Errors: as above. */
ML_NODISCARD enum ml_status
ml_stacks_prune_by(struct ml_stacks *stacks, const struct ml_prune_rule *rule);

/* Live bytes of all processes that are told by stack: not folded, not without one, not of a
 * function alone. */
uint64_t ml_stacks_told_bytes(const struct ml_stacks *stacks);

/* Live bytes of all processes that are told of a function alone. */
uint64_t ml_stacks_function_bytes(const struct ml_stacks *stacks);

/* What all stacks of all processes are worth. */
uint64_t ml_stacks_worth(const struct ml_stacks *stacks);

/* A scale of worth: 1, and so many even steps to each doubling; beyond its end nobody's stack is
 * worth as much for a byte. Below ML_PRUNE_STEPS. */
enum { ML_PRUNE_STEPS_A_BIT = 16, ML_PRUNE_STEPS = 40 * ML_PRUNE_STEPS_A_BIT };
double ml_prune_worth(uint32_t step);

/* The largest least worth of that scale with which at least so many live bytes are still
 * told by stack; 0: none, or all stacks are needed for that. Nothing is changed. Errors: as above.
 */
ML_NODISCARD enum ml_status
ml_stacks_worth_to_tell(const struct ml_stacks *stacks, uint64_t told_bytes, double *out_worth);

/* Make one of what reads alike: places of the same functions, whatever address and line they are
 * of. For forms that show functions alone; the figures of stacks that are equal then add up.
 * Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_merge_functions(struct ml_stacks *stacks);

/* Keep of each stack the function that asked (tools/analyzer/stacks/attribution.h), what stands
 * between it and the allocator, and `frames` - 1 frames further out; the rest becomes one frame
 * "left out". Stacks that are equal then are one: every sum stays. Errors: ML_ENV_MEMORY. */
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
bool ml_stacks_copy_init(struct ml_stacks_copy *copy, struct ml_stacks *stacks);
void ml_stacks_copy_fini(struct ml_stacks_copy *copy);

/* Make the stacks what they were when the copy was made. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stacks_restore(struct ml_stacks *stacks, const struct ml_stacks_copy *copy);

#endif
