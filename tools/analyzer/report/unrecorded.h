/* What a text says of the processes that have no profile. Room: tools. Context: one thread.
 *
 * One rule: a process is told with the memory that it had, and with the reason; many of one kind
 * are one line. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_UNRECORDED_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_UNRECORDED_H

#include "tools/analyzer/report/internal.h"

/* The report's section: a line for each kind, largest memory first; forks that called no malloc and
 * have next to no memory of their own are counted alone; what may be missing from the list. */
void ml_report_unrecorded(const struct ml_report_page *page);

#endif
