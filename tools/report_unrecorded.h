/* What a text says of the processes that have no profile. Room: tools. Context: one thread.
 *
 * One rule: a process is told with the memory that it had, and with the reason; many of one kind
 * are one line. */
#ifndef MEMLOG_TOOLS_REPORT_UNRECORDED_H
#define MEMLOG_TOOLS_REPORT_UNRECORDED_H

#include "tools/report_internal.h"

/* At most `lines_max` lines, the last of them for the rest; largest memory first. Returns how many
 * were written; `before` stands before the first. Forks that called no malloc and have next to no
 * memory of their own are left out. */
size_t ml_report_unrecorded_lines(
    const struct ml_report_page *page, const char *before, const char *indent, size_t lines_max
);

/* The report's section: all of the above, forks, and what may be missing from the list. */
void ml_report_unrecorded(const struct ml_report_page *page);

#endif
