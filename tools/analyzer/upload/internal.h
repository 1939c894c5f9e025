/* What body.c (the forms) and fit.c (how much of it) share. Room: tools (private). */
#ifndef MEMLOG_TOOLS_ANALYZER_UPLOAD_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_UPLOAD_INTERNAL_H

#include <stddef.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/upload/body.h"

/* A body in memory. */
struct ml_upload_bytes {
    char *bytes; /* the receiver's to free */
    size_t count_bytes;
};

/* The stacks as they stand, in the upload's form, however large that is. Errors: ML_ENV_MEMORY;
 * then, too, the bytes are to be freed. */
ML_NODISCARD enum ml_status
ml_upload_make(const struct ml_upload *upload, struct ml_upload_bytes *out_body);

#endif
