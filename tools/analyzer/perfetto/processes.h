/* Which process a number of a dump's standard packets means, and its number in the trace of many.
 * Room: tools. Context: one thread.
 *
 * One rule: in the trace a process has one number in all dumps. That is its pid, unless a later
 * process of any dump has the same; then it is a number that no process can have. */
#ifndef MEMLOG_TOOLS_ANALYZER_PERFETTO_PROCESSES_H
#define MEMLOG_TOOLS_ANALYZER_PERFETTO_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/profile.h"

/* No process. */
enum { ML_JOIN_NONE = UINT32_MAX };

/* A process of any of the dumps. */
struct ml_join_process {
    uint32_t id, pid; /* both together are one process's for ever */
    uint64_t start_ns;
    uint32_t trace_pid; /* ml_join_processes_settle */
    size_t last_dump;   /* of those that have it */
    uint64_t smaps_ns;  /* its mappings were told: of that moment */
    size_t smaps_dump;  /* by that dump */
};

struct ml_join_processes {
    struct ml_join_process *items;
    size_t count, capacity;
    struct ml_index index;
};

/* The processes of one dump, in its order: recorded ones, then the others. */
struct ml_join_members {
    uint32_t *processes; /* indices into items */
    uint32_t *by_pid;    /* the same by pid, the latest of one pid last */
    size_t count;
};

void ml_join_processes_fini(struct ml_join_processes *processes);
void ml_join_members_fini(struct ml_join_members *members);

/* Add those of a dump. False: no memory. */
bool ml_join_processes_learn(
    struct ml_join_processes *processes,
    const struct ml_profile *profile,
    size_t dump,
    struct ml_join_members *out_members
);

/* Give each its number, when all are known. False: no memory. */
bool ml_join_processes_settle(struct ml_join_processes *processes);

/* The process that this number means in the dump's packets; ML_JOIN_NONE: no process of it. */
uint32_t ml_join_process_of(
    const struct ml_join_processes *processes,
    const struct ml_join_members *members,
    uint64_t trace_pid
);

#endif
