/* Some of the stacks, and some of their frames: --focus, --ignore, --show, --hide. Room: tools.
 * Context: one thread.
 *
 * One rule: words match a frame as in pprof, anywhere in its function, source file or module; sums
 * of the dump stay what they are, so a share is always one of the whole. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_FILTER_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_FILTER_H

#include <stdbool.h>

#include "tools/analyzer/stacks/stacks.h"

/* POSIX extended regular expressions; NULL: no wish. */
struct ml_frame_filter {
    const char *focus;  /* stacks with such a frame alone */
    const char *ignore; /* no stack with such a frame */
    const char *show;   /* such frames alone */
    const char *hide;   /* no such frame */
};

/* Whether anything is wished. */
bool ml_frame_filter_is_any(const struct ml_frame_filter *filter);

/* Do it, once, after names were found; the words are regular expressions: the options saw to it.
 * Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stacks_filter_frames(struct ml_stacks *stacks, const struct ml_frame_filter *filter);

#endif
