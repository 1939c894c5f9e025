/* The packets of a dump that are no profiles, for a trace of several dumps. Room: tools. Context:
 * one thread; hostile bytes.
 *
 * One rule: what the last dump of a process tells of its whole life, only that one tells: counters
 * and slices. What each dump tells of a moment stays, but the same moment is not told twice. */
#ifndef MEMLOG_TOOLS_ANALYZER_PERFETTO_REWRITE_H
#define MEMLOG_TOOLS_ANALYZER_PERFETTO_REWRITE_H

#include "tools/analyzer/perfetto/fields.h"
#include "tools/analyzer/perfetto/processes.h"

/* The sequence of packets that belong to no heap, and that of counters and slices. */
enum { ML_JOIN_SEQUENCE_COMMON = 1, ML_JOIN_SEQUENCE_EVENTS = 2 };

/* A track of the dump at hand. */
struct ml_join_track {
    uint64_t theirs, ours; /* its numbers */
    uint32_t process;      /* ML_JOIN_NONE: no process's */
};

struct ml_join_rewriting {
    struct ml_join_processes *processes;
    const struct ml_join_members *members;
    size_t dump;
    bool events_begun; /* by any dump */
    struct ml_join_track *tracks;
    size_t tracks_count, tracks_capacity;
    struct ml_index tracks_index;
    bool has_failed; /* no memory */
};

/* Before a dump. */
void ml_join_rewriting_begin(
    struct ml_join_rewriting *rewriting, const struct ml_join_members *members, size_t dump
);
void ml_join_rewriting_fini(struct ml_join_rewriting *rewriting);

/* The number of a process of the dump in the trace; an unknown one stays. */
uint64_t ml_join_pid(const struct ml_join_rewriting *rewriting, uint64_t theirs);

/* Put the packet's fields as they are in the trace. False: it is left out. */
bool ml_join_rewrite(
    struct ml_join_rewriting *rewriting, struct ml_pb_span packet, struct ml_pb_buffer *out
);

#endif
