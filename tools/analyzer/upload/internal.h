/* Shared by body.c (the forms) and fit.c (how much fits). Room: tools (private). */
#ifndef MEMLOG_TOOLS_ANALYZER_UPLOAD_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_UPLOAD_INTERNAL_H

#include <stddef.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/upload/body.h"

/* A body in memory. */
struct ml_upload_bytes {
    char *bytes; /* owner: the receiver */
    size_t count_bytes;
};

/* Write the stacks as they are in the upload's form, however large. Errors: ML_ENV_MEMORY; even
 * then the bytes are to be freed. */
ML_NODISCARD enum ml_status
ml_upload_make(const struct ml_upload *upload, struct ml_upload_bytes *out_body);

#endif
