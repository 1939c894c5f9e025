/* What body.c (the forms), fit.c (how much of it) and programs.c share. Room:
 * tools (private). */
#ifndef MEMLOG_TOOLS_ANALYZER_UPLOAD_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_UPLOAD_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"
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

/* A profile whose processes of one program are one. */
struct ml_upload_programs {
    struct ml_profile profile; /* all but its processes is borrowed */
    struct ml_arena arena;
    size_t told_as_one; /* processes that are not told for themselves any more */
};

/* Make it of a profile and its stacks, whose lists become as many as it has processes. False: no
 * memory; then, too, it is to be finished, and the stacks are good for _fini alone. */
bool ml_upload_programs_init(
    struct ml_upload_programs *programs, const struct ml_profile *profile, struct ml_stacks *stacks
);
void ml_upload_programs_fini(struct ml_upload_programs *programs);

#endif
