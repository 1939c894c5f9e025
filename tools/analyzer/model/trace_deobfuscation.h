/* Perfetto's DeobfuscationMapping packets of a dump, read and written. Room: tools. Context: one
 * thread; hostile bytes.
 *
 * One rule: like other names they may be anywhere in the trace, so `memlog symbolize` appends
 * them. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_DEOBFUSCATION_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_DEOBFUSCATION_H

#include <pb_decode.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/deobfuscation.h"

/* Add one message's classes. Errors: ML_PEER_FORM, ML_ENV_MEMORY; then none of them. */
ML_NODISCARD enum ml_status
ml_trace_deobfuscation_decode(struct ml_deobfuscation *names, pb_istream_t *stream);

/* Write those that the dump did not bring. Errors of the file stay with the file. */
void ml_trace_deobfuscation_write(const struct ml_deobfuscation *names, FILE *out);

#endif
