/* Leaves out stacks that hold little. Room: tools. Context: one thread.
 *
 * One rule: every sum stays. A stack that is left out is folded into a frame `<other>`. That frame
 * stands below the stack's nearest caller that a kept stack has, too. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_PRUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/stacks/stacks.h"

/* A stack stays with so many blocks, live or at a peak, whatever their size. The figure is that of
 * Chromium's uploads. */
enum { ML_PRUNE_KEPT_BLOCKS = 1024 };

/* Prune each list by itself. A stack is left out when it has less than `below_bytes`, live and at
 * the peak, and fewer blocks than ML_PRUNE_KEPT_BLOCKS. Unused places and nodes go, too. 0: keep
 * all.
 *
 * Errors: ML_ENV_MEMORY; then only _fini is allowed. */
ML_NODISCARD enum ml_status ml_stacks_prune(struct ml_stacks *stacks, uint64_t below_bytes);

/* Drop the nodes and places that no list uses. Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_forget(struct ml_stacks *stacks);

/* Which stacks stay. A stack's worth is what it holds. Its price is the bytes that it adds to a
 * body, for callers that no larger stack has. It stays with a worth of `least_worth` a byte, or, if
 * `below_bytes` is not 0, when ml_stacks_prune keeps it. The stack that a trigger names and the one
 * of most worth always stay. A lower least worth keeps a superset.
 *
 * Many small stacks of one function can be a large share. If the stacks of one attributed function
 * (tools/analyzer/stacks/attribution.h) are worth `function_worth` together, those that do not stay
 * become one: `<other>` and the function. 0: never. */
struct ml_prune_rule {
    double least_worth;
    uint64_t below_bytes;
    uint64_t function_worth;
    /* So many stacks of at least this worth stay, too, and as many of the tree's list. */
    double margin_worth;
    uint64_t margin_count;
};

/* Fold what does not stay in each list but those of details. In lists by heap and type what is
 * folded, or merged by function, keeps its heap alone: the sums of types are those of stacks that
 * stay. Errors: as above. */
ML_NODISCARD enum ml_status
ml_stacks_prune_by(struct ml_stacks *stacks, const struct ml_prune_rule *rule);

/* Live bytes of all processes that still have their stack: neither folded nor merged by function.
 */
uint64_t ml_stacks_told_bytes(const struct ml_stacks *stacks);

/* Live bytes of all processes that are merged by function. */
uint64_t ml_stacks_function_bytes(const struct ml_stacks *stacks);

/* The worth of all stacks of all processes. */
uint64_t ml_stacks_worth(const struct ml_stacks *stacks);

/* A scale of worth from 1, with equal steps to each doubling. No stack is worth more a byte than
 * its end. `step` is below ML_PRUNE_STEPS. */
enum { ML_PRUNE_STEPS_A_BIT = 16, ML_PRUNE_STEPS = 40 * ML_PRUNE_STEPS_A_BIT };
double ml_prune_worth(uint32_t step);

/* The largest least worth of that scale that leaves `told_bytes` live bytes with their stack. 0:
 * even the first step of the scale leaves less. The stacks do not change. Errors: as above. */
ML_NODISCARD enum ml_status
ml_stacks_worth_to_tell(const struct ml_stacks *stacks, uint64_t told_bytes, double *out_worth);

/* Merge places of the same functions, whatever their address and line. This is for forms that show
 * functions alone. Figures of stacks that become equal add up. Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_merge_functions(struct ml_stacks *stacks);

/* Shorten each stack. It keeps the attributed function (tools/analyzer/stacks/attribution.h), the
 * frames inside of it and `frames` - 1 callers. One frame "left out" stands for the rest. Stacks
 * that become equal are merged. Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_shorten(struct ml_stacks *stacks, uint32_t frames);

/* A copy of the stacks, to prune them again in another way. */
struct ml_stacks_copy {
    struct ml_stack_node *nodes;
    struct ml_place *places;
    struct ml_stack *stacks; /* the tree's, then each process's */
    size_t *counts;          /* of each list */
    size_t nodes_count, places_count;
    uint32_t guilty;
};

/* False: no memory; then there is nothing to free. */
bool ml_stacks_copy_init(struct ml_stacks_copy *copy, struct ml_stacks *stacks);
void ml_stacks_copy_fini(struct ml_stacks_copy *copy);

/* Set the stacks back to the copy. Errors: as above. */
ML_NODISCARD enum ml_status
ml_stacks_restore(struct ml_stacks *stacks, const struct ml_stacks_copy *copy);

#endif
