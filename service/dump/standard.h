/* The standard packets of a dump: what Perfetto's UI and trace_processor open. Room: service.
 * Context: one thread.
 *
 * One rule: one trusted_packet_sequence_id per (process, heap), each with its own interned tables
 * and its state cleared once. Anything else makes trace_processor count twice or drop rows. */
#ifndef MEMLOG_SERVICE_DUMP_STANDARD_H
#define MEMLOG_SERVICE_DUMP_STANDARD_H

#include "service/dump/packet.h"
#include "service/snapshot/snapshot.h"

/* What the packets of one dump share. */
struct ml_dump_standard {
    uint32_t *trace_pids; /* see ml_dump_standard_init; of the unrecorded behind the others' */
    uint32_t next_sequence;
    uint32_t events_sequence; /* 0: no counter and no slice was written yet */
};

/* Give each process, recorded or not, the pid under which the trace shows it: its own, unless a
 * later process has the same (exec, or the number came round again); then a number that no process
 * can have. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_dump_standard_init(struct ml_dump_standard *standard, const struct ml_snapshot *snapshot);
void ml_dump_standard_fini(struct ml_dump_standard *standard);

/* The uuid of a process's track: the same for it in every dump of it, another for any other
 * process: traces are put behind one another. */
uint64_t ml_dump_standard_track(uint32_t trace_pid, uint64_t start_monotonic_ns);

/* The file's first packet: one snapshot of the clocks, ahead of everything; without
 * MONOTONIC_COARSE in it trace_processor drops every heap profile. Fills in all of *out_head. */
void ml_dump_standard_clocks(const struct ml_snapshot *snapshot, ml_trace_TracePacket *out_head);

/* The head of a packet that belongs to no process's heap. Units: ns, BOOTTIME. */
ml_trace_TracePacket ml_dump_standard_head(uint64_t boottime_ns);

/* The head of a counter's or slice's packet: they have a sequence of their own. */
ml_trace_TracePacket
ml_dump_standard_event_head(struct ml_dump_standard *standard, uint64_t boottime_ns);

/* The process tree, names, resident sizes. */
void ml_dump_standard_heads(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
);

#endif
