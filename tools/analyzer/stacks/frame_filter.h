/* Filters of stacks and frames: --focus, --ignore, --show, --hide. Room: tools. Context: one
 * thread.
 *
 * One rule: an expression matches anywhere in a frame's function, source file or module, as in
 * pprof. The sums of the dump do not change, so every share is a share of the whole. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_FILTER_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_FILTER_H

#include <stdbool.h>

#include "tools/analyzer/stacks/stacks.h"

/* POSIX extended regular expressions; NULL: not given. */
struct ml_frame_filter {
    const char *focus;  /* keep only stacks with such a frame */
    const char *ignore; /* drop stacks with such a frame */
    const char *show;   /* keep only such frames */
    const char *hide;   /* drop such frames */
};

/* Whether any option is given. */
bool ml_frame_filter_is_any(const struct ml_frame_filter *filter);

/* Filter the stacks once, after names were found. The option table has checked the expressions.
 * Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stacks_filter_frames(struct ml_stacks *stacks, const struct ml_frame_filter *filter);

#endif
