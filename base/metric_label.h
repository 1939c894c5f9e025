/* Foreign text as label values of Prometheus' text format and OpenMetrics. Room: base.
 * Context: any. */
#ifndef MEMLOG_BASE_METRIC_LABEL_H
#define MEMLOG_BASE_METRIC_LABEL_H

#include <stdio.h>

/* Write the value that stands between the quotes: printable (base/printable.h), quotes and
 * backslashes escaped. Errors stay with the file. */
void ml_metric_label(FILE *out, const char *text);

#endif
