/* What memory is made of, for the live page and for Prometheus. Room: tools. Context: one thread.
 *
 * One rule: both say what the text's first lines say: of running processes, or where none runs, of
 * each at its largest reading. */
#ifndef MEMLOG_TOOLS_ANALYZER_WHOLE_DATA_H
#define MEMLOG_TOOLS_ANALYZER_WHOLE_DATA_H

#include <stdio.h>

#include "base/json_writer.h"
#include "tools/analyzer/model/profile.h"

/* One line of JSON: the tree and the largest processes. */
void ml_whole_json(const struct ml_profile *profile, FILE *out);

/* A member "memory" of a report's tree: the sums over all processes that run. null: none does.
 * Shared bytes are not summed up, since several processes have the same ones. */
void ml_whole_tree_member(struct ml_json *json, const struct ml_profile *profile);

/* A member "memory_peak": the same of when all processes together had most private memory, with
 * its time. null: that was never read. */
void ml_whole_tree_peak_member(struct ml_json *json, const struct ml_profile *profile);

/* Families of Prometheus' text format, of running processes alone. */
void ml_whole_metrics(const struct ml_profile *profile, FILE *out);

#endif
