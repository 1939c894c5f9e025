/* A dump, or what changed between two, as one HTML page with a flame graph. Room: tools. Context:
 * one thread.
 *
 * One rule: the page holds all it needs and asks nobody for anything; its sums are the report's.
 * Frames that would be thinner than ML_FLAME_RESOLUTION of every figure of every view are folded
 * into `<other>` below their caller, so the largest profile opens at once. */
#ifndef MEMLOG_TOOLS_FLAME_H
#define MEMLOG_TOOLS_FLAME_H

#include <stddef.h>
#include <stdio.h>

#include "ipc/ml_status.h"
#include "tools/metric.h"
#include "tools/profile.h"
#include "tools/stacks.h"

/* The finest share of a view's figure that is shown: a tenth of a pixel of a wide screen, so that
 * there is something to see after zooming in. */
enum { ML_FLAME_RESOLUTION = 20000 };

/* One dump. */
struct ml_flame_side {
    const struct ml_profile *profile;
    const struct ml_stacks *stacks;
};

/* Write the page of `after`, which shows `metric` first; with `before`, of what changed since then:
 * processes are paired by pid and name, else by role and command line.
 *
 * Errors: ML_ENV_MEMORY. Errors of the file stay with the file. */
ML_NODISCARD enum ml_status ml_flame_write(
    const struct ml_flame_side *after,
    const struct ml_flame_side *before,
    enum ml_metric metric,
    FILE *out
);

#endif
