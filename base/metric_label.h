/* The text of metrics, as Prometheus' text format and OpenMetrics have it. Room: base. Context:
 * any. */
#ifndef MEMLOG_BASE_METRIC_LABEL_H
#define MEMLOG_BASE_METRIC_LABEL_H

#include <stdbool.h>
#include <stdio.h>

/* Write the value that stands between the quotes: printable (base/printable.h), quotes and
 * backslashes escaped. Errors stay with the file. */
void ml_metric_label(FILE *out, const char *text);

/* The two lines in front of a family's samples. OpenMetrics (`is_open`) names the family,
 * Prometheus' own format the samples: a counter's are called NAME_total. */
void ml_metric_head(FILE *out, const char *name, bool is_counter, bool is_open, const char *help);

#endif
