/* What the host saw, as Perfetto's tools show it: threads, memory, and why the dump was taken.
 * Room: service. Context: one thread.
 *
 * One rule: none of it counts in a heap profile; without it a dump is as exact. */
#ifndef MEMLOG_SERVICE_DUMP_VIEW_H
#define MEMLOG_SERVICE_DUMP_VIEW_H

#include "service/dump/packet.h"
#include "service/dump/standard.h"
#include "service/snapshot/snapshot.h"

/* Why it was taken: an event on the trace's own track, and its `trace_trigger`. */
void ml_dump_view_reason(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* The threads of all processes, and what their memory was, by name of the mapping. Of the former
 * image of a pid there is none: its threads' numbers are the later one's. */
void ml_dump_view_processes(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
);

#endif
