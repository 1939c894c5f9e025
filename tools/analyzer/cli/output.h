/* Where a command's answer goes. Room: tools. Context: one thread.
 *
 * One rule: an existing file stays until the new one is whole. The new one is written as PATH.part,
 * readable by its user only and through no link, and renamed. A device or pipe gets the bytes as
 * they come. */
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

/* End it. With ML_OK the whole file gets its name, with anything else the name is unchanged.
 * Returns `status`, or ML_ENV_SYSTEM (see errno) when the file cannot be written. */
ML_NODISCARD enum ml_status ml_output_close(struct ml_output *output, enum ml_status status);

#endif
