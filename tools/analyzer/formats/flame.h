/* A dump, or what changed between two, as one HTML page with a flame graph. Room: tools. Context:
 * one thread.
 *
 * One rule: the page is self-contained and makes no requests; its sums are the report's. Frames
 * that are too thin by every figure of every view are folded into `<other>` below their caller, so
 * the largest profile opens at once. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_FLAME_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_FLAME_H

#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"

/* The finest share of a view's figure that is shown, in halvings of the whole: 1/16384, a tenth of
 * a pixel of a wide screen, so that zooming in shows detail. It is coarser if more frames than
 * these would be kept, in the tree and all processes together: as many as a browser draws without
 * delay. */
enum { ML_FLAME_HALVINGS = 14, ML_FLAME_TREE_FRAMES = 20000, ML_FLAME_PROCESS_FRAMES = 40000 };

/* Write the page of `after`, which shows `metric` first; with `before`, of what changed since then:
 * processes are paired by pid and name, else by role and command line.
 *
 * Errors: ML_ENV_MEMORY. Errors of the file stay with the file. */
ML_NODISCARD enum ml_status ml_flame_write(
    const struct ml_stacks *after, const struct ml_stacks *before, enum ml_metric metric, FILE *out
);

/* Its data alone, as JSON, for the tree only, in at most about `frames_max` frames: for the live
 * page. Errors: as above. */
ML_NODISCARD enum ml_status ml_flame_write_data(
    const struct ml_stacks *after,
    const struct ml_stacks *before,
    enum ml_metric metric,
    size_t frames_max,
    FILE *out
);

#endif
