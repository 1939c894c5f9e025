/* The body of a report, whatever its form, as rows. Room: tools. Context: one thread.
 *
 * One rule: a body is known by what it is, and not by what its sender or a folder called it. Forms
 * are Chromium's multipart report, a Chrome trace, Pyroscope's push and ingest, pprof, and
 * OpenTelemetry's profiles; each may be gzipped. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_READ_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_READ_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/fleet/form.h"
#include "tools/analyzer/fleet/rows.h"

/* Errors: ML_PEER_FORM: it is no report; ML_ENV_MISSING: it has no heap; ML_PEER_LIMIT: it is too
 * large; ML_ENV_MEMORY. Even then the rows are to be freed. */
ML_NODISCARD enum ml_status ml_fleet_read(struct ml_fleet_piece body, struct ml_fleet_rows *rows);

/* The same of what was unpacked: JSON, or a message of protobuf. */
ML_NODISCARD enum ml_status
ml_fleet_read_plain(struct ml_fleet_piece plain, struct ml_fleet_rows *rows);

#endif
