/* What the body of a report is: finds the profile in it and unpacks it. Room: tools. Context: one
 * thread.
 *
 * One rule: the body is anybody's. Nothing is read behind its end, and what it unpacks to is
 * bounded. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_FORM_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

/* Of what is unpacked: g++'s trace of 20,000 stacks has 8 MiB. */
enum { ML_FLEET_UNPACKED_MAX = 256 << 20 };

struct ml_fleet_piece {
    const uint8_t *bytes;
    size_t count_bytes;
};

/* The part of that name in a multipart body, whose first line is its boundary. False: there is
 * none. */
bool ml_fleet_part(struct ml_fleet_piece body, const char *name, struct ml_fleet_piece *out_part);

/* Whether the body begins as a multipart one, as gzip does. */
bool ml_fleet_is_multipart(struct ml_fleet_piece body);
bool ml_fleet_is_gzip(struct ml_fleet_piece body);

/* Unpack gzip. Errors: ML_PEER_FORM; ML_PEER_LIMIT beyond ML_FLEET_UNPACKED_MAX; ML_ENV_MEMORY.
 * Owner: free *out_bytes. */
ML_NODISCARD enum ml_status
ml_fleet_unpack(struct ml_fleet_piece packed, uint8_t **out_bytes, size_t *out_count);

#endif
