/* What the host saw, for Perfetto's tools: threads, memory, and why the dump was taken. Room:
 * service. Context: one thread.
 *
 * One rule: none of it counts in a heap profile. */
#ifndef MEMLOG_SERVICE_DUMP_VIEW_H
#define MEMLOG_SERVICE_DUMP_VIEW_H

#include "service/dump/packet.h"
#include "service/dump/standard.h"
#include "service/snapshot/snapshot.h"

/* Write why the dump was taken: an event on the trace's own track, and its `trace_trigger`. */
void ml_dump_view_reason(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* Write the threads of all processes, and their memory by name of the mapping. A program that its
 * process has replaced has none: the threads' numbers are those of the later program. */
void ml_dump_view_processes(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
);

#endif
