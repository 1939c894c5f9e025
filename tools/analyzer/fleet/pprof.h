/* Reads pprof's profile.proto, as tools/analyzer/formats/pprof.h and Go's runtime write it, into
 * rows. Room: tools. Context: one thread.
 *
 * One rule: processes, roles, threads, heaps and types are told by labels, or not at all. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_PPROF_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_PPROF_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/fleet/form.h"
#include "tools/analyzer/fleet/rows.h"

/* `message` is unpacked. The head of the rows is filled in where it is empty. Errors: ML_PEER_FORM:
 * it is none; ML_ENV_MISSING: it says nothing of live memory. What the rows could not take, they
 * say themselves. */
ML_NODISCARD enum ml_status
ml_fleet_pprof_read(struct ml_fleet_piece message, struct ml_fleet_rows *rows);

#endif
