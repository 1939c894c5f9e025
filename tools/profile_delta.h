/* What changed between two dumps of one run, as a profile. Room: tools. Context: one thread.
 *
 * One rule: figures become differences modulo 2^64: one that shrank reads as a negative number
 * where it is written as a signed one. Only forms that do so (pprof) may show such a profile. */
#ifndef MEMLOG_TOOLS_PROFILE_DELTA_H
#define MEMLOG_TOOLS_PROFILE_DELTA_H

#include "ipc/ml_status.h"
#include "tools/profile.h"

/* Take `before`'s figures from `profile`'s, process by process, cell by cell; processes and cells
 * that `before` does not have stay as they are. Standard errors and peaks are left alone: they have
 * no difference. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_profile_subtract(struct ml_profile *profile, const struct ml_profile *before);

#endif
