/* Which stacks a rule is about, and who holds most of them. Room: tools (private). Context: one
 * thread.
 *
 * One rule: a stack counts for a function if the function is any of its frames, once. */
#ifndef MEMLOG_TOOLS_ANALYZER_BUDGET_MATCH_H
#define MEMLOG_TOOLS_ANALYZER_BUDGET_MATCH_H

#include "tools/analyzer/budget/budget.h"
#include "tools/analyzer/budget/measure.h"
#include "tools/analyzer/stacks/stacks.h"

struct ml_budget_matcher {
    const struct ml_budget_rule *rule;
    const struct ml_stacks *stacks;
    /* Of each place: 1 + the number of its first function that the rule names; 0: none. NULL: the
     * rule names no function. */
    uint32_t *matches;
};

/* What stacks add up to. */
struct ml_budget_sum {
    double value, variance;
    double nameless;  /* of stacks with a frame that has no name */
    bool has_matched; /* some stack is the rule's */
};

/* False: no memory; _fini is needed even then. */
bool ml_budget_matcher_init(
    struct ml_budget_matcher *matcher,
    const struct ml_budget_rule *rule,
    const struct ml_stacks *stacks
);
void ml_budget_matcher_fini(struct ml_budget_matcher *matcher);

/* Whether the rule is about the process. */
bool ml_budget_is_meant(
    const struct ml_budget_rule *rule, const struct ml_profile_process *process
);

/* A figure and its variance. */
double ml_budget_pick(
    const struct ml_profile_totals *totals, enum ml_budget_figure figure, double *out_variance
);

/* Add the stacks of the profile's process `index`. For a rule of all processes the peak is that of
 * all together. */
void ml_budget_sum_process(
    const struct ml_budget_matcher *matcher,
    size_t index,
    enum ml_budget_figure figure,
    struct ml_budget_sum *sum
);

/* Fill in holders and source. False: no memory. */
bool ml_budget_tell_holders(
    const struct ml_budget_matcher *matcher,
    enum ml_budget_figure figure,
    struct ml_budget_value *value
);

/* The entries of a process's list that are the rule's. `take` may be NULL where only `sum` is
 * wanted. */
typedef void (*ml_budget_take)(void *context, const struct ml_stack *stack, double value);
void ml_budget_visit(
    const struct ml_budget_matcher *matcher,
    size_t index,
    enum ml_budget_figure figure,
    struct ml_budget_sum *sum,
    ml_budget_take take,
    void *context
);

#endif
