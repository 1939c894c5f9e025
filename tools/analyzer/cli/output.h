/* Where a command's answer goes. Room: tools. Context: one thread.
 *
 * One rule: a file that was there stays until the new one is whole: it is written as PATH.part, a
 * new file that is its user's alone and behind no link, and renamed. A device or pipe takes the
 * bytes as they come. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_OUTPUT_H
#define MEMLOG_TOOLS_ANALYZER_CLI_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"

struct ml_output {
    FILE *file;
    const char *path; /* NULL: stdout */
    bool is_renamed;
    char temporary[PATH_MAX];
};

/* Open it; `path` NULL or "-": stdout. Errors: ML_ENV_SYSTEM, see errno; then nothing is open. */
ML_NODISCARD enum ml_status ml_output_open(struct ml_output *output, const char *path);

/* End it: with ML_OK everything is written and stands under its name, with anything else the name
 * is as before. Returns `status`, or ML_ENV_SYSTEM (see errno) when the file refuses now. */
ML_NODISCARD enum ml_status ml_output_close(struct ml_output *output, enum ml_status status);

#endif
