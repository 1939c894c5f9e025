/* The text about processes that have no profile. Room: tools. Context: one thread.
 *
 * One rule: a process is shown with its memory and the reason. Many of one kind share one line. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_UNRECORDED_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_UNRECORDED_H

#include "tools/analyzer/report/internal.h"

/* The report's section: one line a kind, the largest memory first. Forked processes that called no
 * malloc and have hardly any memory of their own are only counted. Then what the list may miss. */
void ml_report_unrecorded(const struct ml_report_page *page);

#endif
