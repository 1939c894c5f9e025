/* Ids of frames and stacks: the same for the same in all reports of a team, and of no use to
 * another team. Room: host. Context: any.
 *
 * One rule: an id is a keyed hash. Who does not have a team's key can neither guess which stacks it
 * has nor make another stack with the id of one. Source: HMAC-SHA-256, its first 63 bits. */
#ifndef MEMLOG_HOST_COLLECT_IDS_H
#define MEMLOG_HOST_COLLECT_IDS_H

#include <stdint.h>

#include "host/collect/ledger.h"
#include "mojom_like_idl/contracts/fleet_report_mojom.h"

/* Positive; 0 is "none". */
int64_t
ml_id_of_frame(const uint8_t key[ML_TEAM_KEY_BYTES], const struct memlog_fleet_frame *frame);
int64_t ml_id_of_stack(const uint8_t key[ML_TEAM_KEY_BYTES], int64_t parent, int64_t frame);

/* Of a stack's names alone: equal for builds whose addresses differ. A frame without a name counts
 * by its module. */
int64_t ml_id_of_names(
    const uint8_t key[ML_TEAM_KEY_BYTES], int64_t parent, const struct memlog_fleet_frame *frame
);

#endif
