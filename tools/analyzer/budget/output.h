/* Verdicts for people, and for what a build server reads: JUnit's XML and SARIF 2.1.0. Room: tools.
 * Context: one thread.
 *
 * One rule: all forms say the same sentences. Errors of the file stay with the file. */
#ifndef MEMLOG_TOOLS_ANALYZER_BUDGET_OUTPUT_H
#define MEMLOG_TOOLS_ANALYZER_BUDGET_OUTPUT_H

#include <stdio.h>

#include "tools/analyzer/budget/verdict.h"

void ml_budget_text(const struct ml_budget_verdicts *verdicts, FILE *out);

/* A broken limit is a failure, one that is not sure an error. */
void ml_budget_junit(const struct ml_budget_verdicts *verdicts, FILE *out);

/* A broken limit is an error, one that is not sure a warning, at the line of the function where it
 * is known, else at the line of the rule. Held ones have no result. */
void ml_budget_sarif(const struct ml_budget_verdicts *verdicts, FILE *out);

#endif
