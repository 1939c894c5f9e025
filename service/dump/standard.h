/* The standard packets of a dump, for Perfetto's UI and trace_processor. Room: service. Context:
 * one thread.
 *
 * One rule: each (process, heap) has one trusted_packet_sequence_id, with its own interned tables,
 * whose state is cleared once. Otherwise trace_processor counts twice or drops rows. */
#ifndef MEMLOG_SERVICE_DUMP_STANDARD_H
#define MEMLOG_SERVICE_DUMP_STANDARD_H

#include "service/dump/packet.h"
#include "service/snapshot/snapshot.h"

/* The state that the packets of one dump share. */
struct ml_dump_standard {
    uint32_t *trace_pids; /* see ml_dump_standard_init; those without a profile come last */
    uint32_t next_sequence;
    uint32_t events_sequence; /* 0: no counter and no slice was written yet */
};

/* Give each process, with a profile or not, the pid under which the trace shows it. It is its own,
 * unless a later process has the same (by exec, or as the number was reused). Then it is a number
 * that no process can have. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_dump_standard_init(struct ml_dump_standard *standard, const struct ml_snapshot *snapshot);
void ml_dump_standard_fini(struct ml_dump_standard *standard);

/* The uuid of a process's track. It is the same in every dump of the process and differs from that
 * of any other, so traces can be concatenated. */
uint64_t ml_dump_standard_track(uint32_t trace_pid, uint64_t start_monotonic_ns);

/* The file's first packet: a snapshot of the clocks. Without MONOTONIC_COARSE in it trace_processor
 * drops every heap profile. Fills in all of *out_head. */
void ml_dump_standard_clocks(const struct ml_snapshot *snapshot, ml_trace_TracePacket *out_head);

/* Put a process's name in front of its arguments in a process tree, in place of the program's.
 * trace_processor calls the process by the tree's first word, whatever its track is named, and by
 * that up to a blank if the word is alone. `is_alone`: no argument follows. */
bool ml_dump_standard_name(
    pb_ostream_t *stream, const pb_field_t *field, const struct ml_string *name, bool is_alone
);

/* The head of a packet that belongs to no heap. Units: ns, BOOTTIME. */
ml_trace_TracePacket ml_dump_standard_head(uint64_t boottime_ns);

/* The head of the packet of a counter or a slice: these have a sequence of their own. */
ml_trace_TracePacket
ml_dump_standard_event_head(struct ml_dump_standard *standard, uint64_t boottime_ns);

/* Write the process tree, names and resident sizes. */
void ml_dump_standard_heads(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
);

#endif
