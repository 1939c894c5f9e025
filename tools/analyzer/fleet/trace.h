/* Reads a report's Chrome trace, as tools/analyzer/upload/body.h writes it, into rows. Room: tools.
 * Context: one thread.
 *
 * One rule: a trace of others' making has its live bytes at least; memlog's own members tell the
 * rest. Whatever does not fit together is left out, never guessed. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_TRACE_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_TRACE_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/fleet/rows.h"

struct json_t;

/* `root` is borrowed. Errors: ML_ENV_MISSING: it has no heap. What the rows could not take, they
 * say themselves. */
ML_NODISCARD enum ml_status ml_fleet_trace_read(struct json_t *root, struct ml_fleet_rows *rows);

#endif
