/* The standard heap profile of one process: Perfetto's interned data and ProfilePackets. Room:
 * service. Context: one thread.
 *
 * One rule: each heap has one trusted_packet_sequence_id, whose state only its first packet clears.
 * Otherwise trace_processor counts twice or drops rows. */
#ifndef MEMLOG_SERVICE_DUMP_PROFILE_H
#define MEMLOG_SERVICE_DUMP_PROFILE_H

#include <stdint.h>

#include "service/dump/packet.h"
#include "service/snapshot/snapshot.h"

/* Write the profiles of all heaps of `process`, shown as `trace_pid`. They take the sequences from
 * *sequence on, which moves behind them. */
void ml_dump_profile(
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot,
    const struct ml_snapshot_process *process,
    uint32_t trace_pid,
    uint32_t *sequence
);

/* Write on that sequence that another profiler has the process. */
void ml_dump_profile_rejected(
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot,
    uint32_t pid,
    uint32_t sequence
);

#endif
