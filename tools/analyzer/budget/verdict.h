/* Verdicts on a budget's limits, over one dump or several, beside a base or not. Room: tools.
 * Context: one thread.
 *
 * One rule: held and broken are said only of what is certain; between them stands "not sure", with
 * the reason. Over several dumps it is the median that is judged. */
#ifndef MEMLOG_TOOLS_ANALYZER_BUDGET_VERDICT_H
#define MEMLOG_TOOLS_ANALYZER_BUDGET_VERDICT_H

#include "tools/analyzer/budget/budget.h"
#include "tools/analyzer/budget/measure.h"

enum ml_verdict { ML_VERDICT_HELD, ML_VERDICT_UNSURE, ML_VERDICT_BROKEN, ML_VERDICTS };

/* The dumps of one side, with the values of all limits of each. */
struct ml_budget_dump {
    const char *file;
    struct ml_budget_value *values;
};

struct ml_budget_side {
    struct ml_budget_dump *dumps;
    size_t count;
};

/* What several dumps say of one limit; all 0 where none knows. */
struct ml_budget_median {
    bool has_matched; /* in one of them some stack is the rule's */
    size_t known;     /* dumps that know it */
    double value, low, high;
    double least, most;                   /* of the values */
    const struct ml_budget_dump *nearest; /* whose value is next to the median */
    const struct ml_budget_value *shown;  /* that value */
    const char *why;                      /* of the first dump with bounds, or "" */
};

struct ml_budget_result {
    const struct ml_budget_rule *rule;
    const struct ml_budget_limit *limit;
    enum ml_verdict verdict;
    struct ml_budget_median now, base; /* base: of growth alone */
    double figure;                     /* what is compared: the value, or by how much it grew */
    double most;                       /* what it may be, in bytes or blocks */
    const char *why;                   /* not sure: why not */
};

struct ml_budget_verdicts {
    const struct ml_budget_rules *budget;
    const char *file; /* the budget's */
    struct ml_budget_side now;
    struct ml_budget_result *results; /* in the limits' order */
    size_t count;
    size_t of[ML_VERDICTS];
};

/* Judge all limits. False: no memory. Owner: `now` and `base` are borrowed; _fini frees the rest.
 */
bool ml_budget_judge(
    const struct ml_budget_rules *budget,
    const char *file,
    const struct ml_budget_side *now,
    const struct ml_budget_side *base,
    struct ml_budget_verdicts *out_verdicts
);
void ml_budget_verdicts_fini(struct ml_budget_verdicts *verdicts);

/* "held", "not sure", "BROKEN". */
const char *ml_verdict_name(enum ml_verdict verdict);

/* A result in one sentence: "peak of server is 42.3 MiB, at most 40.0 MiB: 2.3 MiB above". */
enum { ML_BUDGET_SENTENCE_BYTES = 1024 };
const char *
ml_budget_sentence(const struct ml_budget_result *result, char out_text[ML_BUDGET_SENTENCE_BYTES]);

/* The command that shows more: "memlog report --pid=12 0001.exit.pftrace". "": no dump knows. */
const char *
ml_budget_next(const struct ml_budget_result *result, char out_text[ML_BUDGET_SENTENCE_BYTES]);

#endif
