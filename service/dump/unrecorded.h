/* The processes without a profile, for Perfetto's UI: by name, with the reason as a label and as a
 * slice over their life. The UI shows no process without an event. Room: service. Context: one
 * thread. */
#ifndef MEMLOG_SERVICE_DUMP_UNRECORDED_H
#define MEMLOG_SERVICE_DUMP_UNRECORDED_H

#include "service/dump/packet.h"
#include "service/dump/standard.h"
#include "service/snapshot/snapshot.h"

/* Called after ml_dump_standard_heads. */
void ml_dump_unrecorded(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot
);

#endif
