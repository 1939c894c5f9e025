/* Adds the series of a dump to a profile. Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: a series that does not rise in time, or whose values contradict each other, is
 * refused. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_SERIES_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_SERIES_H

#include <pb_decode.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"

/* Decode a MemlogSeries. If it continues where the last one ended, it is part of that series.
 * Errors: ML_PEER_FORM; ML_PEER_REFERENCE no such process; ML_PEER_RANGE; ML_PEER_LIMIT;
 * ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_trace_decode_series(struct ml_profile *profile, pb_istream_t *stream);

#endif
