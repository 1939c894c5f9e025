/* What memory is made of, for the live page and for Prometheus. Room: tools. Context: one thread.
 *
 * One rule: both say what the text's first lines say: of running processes, or where none runs, of
 * each at its largest reading. */
#ifndef MEMLOG_TOOLS_ANALYZER_WHOLE_DATA_H
#define MEMLOG_TOOLS_ANALYZER_WHOLE_DATA_H

#include <stdio.h>

#include "tools/analyzer/model/profile.h"

/* One line of JSON: the tree and the largest processes. */
void ml_whole_json(const struct ml_profile *profile, FILE *out);

/* Families of Prometheus' text format, of running processes alone. */
void ml_whole_metrics(const struct ml_profile *profile, FILE *out);

#endif
