/* What the parts of the text report share. Room: tools. Context: one thread.
 *
 * One rule: every byte that came out of a dump goes through put_clean: controls in a name must not
 * reach a terminal. */
#ifndef MEMLOG_TOOLS_REPORT_INTERNAL_H
#define MEMLOG_TOOLS_REPORT_INTERNAL_H

#include <stdint.h>
#include <stdio.h>

#include "tools/report.h"

/* Longest name that is shown; the rest of a longer one is cut. */
enum { ML_REPORT_NAME_BYTES = 1024 };

struct ml_report_page {
    const struct ml_report *report;
    const struct ml_report_style *style;
    FILE *out;
};

/* Terminal sequences; "" without colour. */
const char *ml_report_bold(const struct ml_report_page *page);
const char *ml_report_dim(const struct ml_report_page *page);
const char *ml_report_warn(const struct ml_report_page *page);
const char *ml_report_plain(const struct ml_report_page *page);

/* A blank line, a title, and beside it what it means. */
void ml_report_heading(const struct ml_report_page *page, const char *title, const char *rest);

/* Text of a dump, its controls as '?'. */
void ml_report_put(const struct ml_report_page *page, const char *text);

/* "" for one, else "s". */
const char *ml_report_plural(uint64_t count);

/* The lists of stacks and what has no names. */
void ml_report_stacks(const struct ml_report_page *page);
void ml_report_nameless(const struct ml_report_page *page);

#endif
