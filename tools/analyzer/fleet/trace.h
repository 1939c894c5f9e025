/* Reads a report's Chrome trace, as tools/analyzer/upload/body.h writes it, into rows. Room: tools.
 * Context: one thread.
 *
 * One rule: a trace of others' making has its live bytes at least; memlog's own members tell the
 * rest. Whatever does not fit together is left out, never guessed. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_TRACE_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_TRACE_H

#include <stddef.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/fleet/rows.h"

/* `text` is JSON. Errors: ML_PEER_FORM: it is none; ML_PEER_LIMIT: it is too large; ML_ENV_MISSING:
 * it has no heap; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_fleet_trace_read(const char *text, size_t count_bytes, struct ml_fleet_rows *rows);

#endif
