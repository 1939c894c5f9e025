/* A dump as collapsed stacks, one a line, for flame graphs: `memlog convert --to=collapsed`. Room:
 * tools. Context: one thread.
 *
 *   name (pid);thread;outermost;...;innermost bytes
 *
 * One rule: the lines' sum is the report's figure. A process's lines are unique and sorted; what
 * would break the form (';', controls) is replaced. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_COLLAPSED_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_COLLAPSED_H

#include <stdint.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"

/* Write one metric's bytes of all processes; the peak is the tree's.
 *
 * Errors: ML_ENV_MEMORY. Errors of the file stay with the file. */
ML_NODISCARD enum ml_status
ml_collapsed_write(const struct ml_stacks *stacks, enum ml_metric metric, FILE *out);

#endif
