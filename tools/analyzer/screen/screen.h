/* The first screen of a report: what the memory is, when most of it was held, who held it, and what
 * to look at next. Room: tools. Context: one thread.
 *
 * One rule: the answer stands within the first ten lines. All else is in the full report, which the
 * last line names. */
#ifndef MEMLOG_TOOLS_ANALYZER_SCREEN_SCREEN_H
#define MEMLOG_TOOLS_ANALYZER_SCREEN_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/analyzer/report/report.h"

/* `is_run_end`: as a run prints it at its end, without the next commands. */
void ml_screen(
    const struct ml_report *report, const struct ml_report_style *style, bool is_run_end, FILE *out
);

#endif
