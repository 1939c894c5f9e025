/* Reads OpenTelemetry's profiles, as tools/analyzer/formats/otlp.h writes them, into rows. Room:
 * tools. Context: one thread.
 *
 * One rule: profiles of one figure each are added up by stack; attributes tell processes and roles.
 *
 * Source: opentelemetry-proto 1.9, profiles/v1development. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_OTLP_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_OTLP_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/fleet/form.h"
#include "tools/analyzer/fleet/rows.h"

/* `message` is an ExportProfilesServiceRequest. Errors: as ml_fleet_pprof_read's. */
ML_NODISCARD enum ml_status
ml_fleet_otlp_read(struct ml_fleet_piece message, struct ml_fleet_rows *rows);

#endif
