/* Reads what Pyroscope's push carries into rows: profiles of pprof's with labels, as memlog's JSON
 * (tools/analyzer/upload/body.c) or as the protobuf of others. Room: tools. Context: one thread.
 *
 * One rule: the labels say whose they are; what they do not say the profiles may.
 *
 * Source: Pyroscope's push.v1.PusherService. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_PUSH_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_PUSH_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/fleet/form.h"
#include "tools/analyzer/fleet/rows.h"

struct json_t;

/* A PushRequest. Errors: as ml_fleet_pprof_read's, and ML_PEER_LIMIT and ML_ENV_MEMORY of what was
 * to be unpacked. */
ML_NODISCARD enum ml_status
ml_fleet_push_read(struct ml_fleet_piece message, struct ml_fleet_rows *rows);

/* The same as JSON, borrowed. */
ML_NODISCARD enum ml_status
ml_fleet_push_json_read(const struct json_t *request, struct ml_fleet_rows *rows);

#endif
