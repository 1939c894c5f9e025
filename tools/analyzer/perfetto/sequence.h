/* The profile of one heap of one process over several dumps, as one packet sequence of Perfetto's.
 * Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: within the sequence a number stands for one content for ever, and a stack has one
 * number. trace_processor takes another number for the same stack as a count that starts anew, and
 * adds both up. For the same reason the state is cleared by the first packet alone. */
#ifndef MEMLOG_TOOLS_ANALYZER_PERFETTO_SEQUENCE_H
#define MEMLOG_TOOLS_ANALYZER_PERFETTO_SEQUENCE_H

#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/perfetto/fields.h"

enum { ML_SEQUENCE_STATS = 8 };

/* Bytes and blocks of a stack since the start. */
struct ml_sequence_figures {
    uint64_t allocated, freed;
    uint64_t alloc_count, free_count;
};

struct ml_sequence_stack {
    struct ml_sequence_figures told; /* by the dump before */
    struct ml_sequence_figures now;  /* of the dump at hand */
};

/* What is interned: its content, with the sequence's own numbers in it. */
struct ml_sequence_entry {
    uint32_t kind; /* the field of InternedData */
    uint64_t number;
    struct ml_pb_span content; /* in the arena */
};

struct ml_sequence {
    uint32_t id;            /* trusted_packet_sequence_id */
    uint64_t pid;           /* in the joined trace */
    uint32_t process;       /* whose it is; what the number means is the caller's */
    struct ml_pb_span heap; /* its name, in the arena */
    bool is_begun;          /* a packet was written */
    bool was_told;          /* by a dump */
    uint64_t next_index;    /* of ProfilePacket */
    uint64_t last_monotonic_ns;
    /* trace_processor adds up what all packets say: flags are told once, numbers by what they grew.
     */
    uint32_t told_flags;                    /* 1 << the field of ProcessHeapSamples */
    uint64_t told_stats[ML_SEQUENCE_STATS]; /* by the field of ProcessStats */
    struct ml_sequence_entry *entries;
    size_t entries_count, entries_capacity;
    struct ml_index entries_index;
    struct ml_sequence_stack *stacks; /* [number of its callstack - 1] */
    size_t stacks_count, stacks_capacity;
    struct ml_arena arena;
};

/* The packets of a heap in one dump: TracePackets with interned data and profiles, in order. */
struct ml_sequence_dump {
    const struct ml_pb_span *packets;
    size_t packets_count;
    uint64_t boottime_ns; /* of the dump */
};

void ml_sequence_fini(struct ml_sequence *sequence);

/* Write what the dump adds: entries that are new, then the cumulative figures of all stacks so far.
 * Nothing is written of a process that has ended before, and has not changed since. A figure never
 * falls: what is live stays right, and what was ever allocated grows by the least that it takes.
 *
 * Errors: ML_ENV_MEMORY. A write error is reported when the file is closed. */
ML_NODISCARD enum ml_status
ml_sequence_add(struct ml_sequence *sequence, const struct ml_sequence_dump *dump, FILE *out);

/* Its process is in the list no more: what it held counts in another one's row. Let all be freed.
 * Errors: as above. */
ML_NODISCARD enum ml_status ml_sequence_close(
    struct ml_sequence *sequence, uint64_t monotonic_ns, uint64_t boottime_ns, FILE *out
);

/* Write a packet of a trace. */
void ml_sequence_write_packet(struct ml_pb_span packet, FILE *out);

#endif
