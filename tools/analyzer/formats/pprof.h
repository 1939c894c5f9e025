/* A dump as a gzipped pprof profile: `memlog convert --to=pprof`. Room: tools. Context: one thread.
 *
 * One rule: the sums of the samples are the report's, to the byte. Values are unsampled, as in the
 * report. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_PPROF_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_PPROF_H

#include <stdint.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/formats/sender.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"

/* The comment that says the build id of the first process's program, in hex behind it. */
#define ML_PPROF_BUILD_NOTE "memlog: build id "

/* The relation of an earlier dump to a later one, by pprof's options. */
enum ml_pprof_base {
    ML_PPROF_BASE,     /* taken away from it */
    ML_PPROF_DIFF_BASE /* compared with it: shares are of the earlier */
};

/* Write the profile of all processes. `sender`: what comments say beside it; NULL: nothing. Sample
 * types, in Go's order: alloc_objects, alloc_space,
 * inuse_objects, inuse_space; where it is known what blocks hold of pages also resident_space and
 * waste_space. Which is shown first is the metric's word: alloc_space for total, the last two for
 * resident and waste, else inuse_space. Labels: pid, process, process_type, thread_name, and as Go
 * has it bytes, a block's size on average.
 *
 * Errors: ML_ENV_MEMORY; ML_ENV_SYSTEM when the file refuses. */
ML_NODISCARD enum ml_status ml_pprof_write(
    const struct ml_stacks *stacks, enum ml_metric metric, const struct ml_sender *sender, FILE *out
);

/* Write that of `after` with the samples of `before` (NULL: none) in it, negative; with
 * ML_PPROF_DIFF_BASE they have the label pprof::base. The same errors. */
ML_NODISCARD enum ml_status ml_pprof_write_diff(
    const struct ml_stacks *after,
    const struct ml_stacks *before,
    enum ml_pprof_base base,
    enum ml_metric metric,
    FILE *out
);

#endif
