/* The figures that a budget's limits are about, of one dump. Room: tools. Context: one thread.
 *
 * One rule: a figure says between which bounds the truth lies. Who lost events, came late or was
 * sampled has wide ones, and no limit is called held that lies between them. */
#ifndef MEMLOG_TOOLS_ANALYZER_BUDGET_MEASURE_H
#define MEMLOG_TOOLS_ANALYZER_BUDGET_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/budget/budget.h"
#include "tools/analyzer/stacks/stacks.h"

enum { ML_BUDGET_HOLDERS = 3, ML_BUDGET_WHY_BYTES = 320, ML_BUDGET_WHO_BYTES = 64 };

/* Who holds most of a figure: "inner < outer < ..." and how much. */
struct ml_budget_holder {
    char *callers; /* NULL: none, and none behind it */
    uint64_t value;
};

/* Bytes or blocks. */
struct ml_budget_value {
    bool has_matched;              /* some stack is the rule's; true of rules of whole processes */
    bool is_known;                 /* else `why` says why not */
    double value, low, high;       /* low <= value <= high; HUGE_VAL: it has no bound */
    char why[ML_BUDGET_WHY_BYTES]; /* the bounds are not the value itself; "": they are */
    uint32_t pid;                  /* of the process that has the figure; 0: all together */
    char who[ML_BUDGET_WHO_BYTES]; /* its name */
    size_t process;                /* 1 + its index in the profile; 0: all together */
    struct ml_budget_holder holders[ML_BUDGET_HOLDERS];
    char *source; /* the file of the function that the rule names, or of the first holder; NULL */
    uint32_t source_line; /* 0: not known */
    char *function;       /* of that; NULL: not known */
};

/* How wide a line of callers is. */
enum { ML_BUDGET_CALLERS_COLUMNS = 76 };

/* Measure all limits of the budget, in the rules' order, into `out_values`, which are all zero:
 * ml_budget_limits() of them. False: no memory; they must be cleared even then. */
bool ml_budget_measure(
    const struct ml_budget_rules *budget,
    const struct ml_stacks *stacks,
    struct ml_budget_value *out_values
);
void ml_budget_values_clear(struct ml_budget_value *values, size_t count);

/* A figure with the bounds that its variance gives it. */
struct ml_budget_value ml_budget_value_of(double value, double variance, uint64_t sampling_bytes);

/* Widen the bounds of a figure of all processes by what the dump lost or never saw. */
void ml_budget_doubt_tree(
    const struct ml_profile *profile, enum ml_budget_figure figure, struct ml_budget_value *value
);

#endif
