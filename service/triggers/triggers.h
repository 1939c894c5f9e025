/* When a dump is taken unasked. Room: service. Context: one thread. No I/O, no clock and no
 * randomness of its own: figures, time and random numbers come in.
 *
 * One rule: a threshold that is crossed makes one dump, not one at every look. A dump that the rate
 * limit refuses leaves its threshold crossed, and is made when the limit permits. */
#ifndef MEMLOG_SERVICE_TRIGGERS_TRIGGERS_H
#define MEMLOG_SERVICE_TRIGGERS_TRIGGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"

enum {
    ML_TRIGGER_REASON_BYTES = MEMLOG_SERVICE_DECISION_REASON_LIMIT,
    ML_TRIGGER_DECISIONS_MAX = 256,
    ML_TRIGGER_NAME_BYTES = MEMLOG_SERVICE_OBSERVED_MEMORY_NAME_LIMIT + 1,
};

/* One process at one look. */
struct ml_trigger_process {
    uint32_t id, pid;
    enum memlog_service_role role;
    const char *name;
    bool running;
    uint64_t footprint_bytes; /* 0: not read at this look */
    uint64_t live_bytes, peak_bytes;
    /* What the heap may take now and at its peak, with what the allocator adds to each block. */
    uint64_t heap_bytes, heap_most_bytes;
    uint32_t killed_by; /* the signal that ended it since the last look; 0: none */
    bool by_oom;        /* the kernel counted an OOM kill as well */
    /* Its footprint at its last dump for that reason, by an earlier service too; 0: none. */
    uint64_t footprint_high_bytes;
    bool is_first; /* the run's first process, or a program that it became */
};

/* A memory with a limit: a control group, the machine. */
struct ml_trigger_memory {
    char name[ML_TRIGGER_NAME_BYTES]; /* the same at every look */
    uint64_t used_bytes, limit_bytes;
    uint64_t high_events, max_events;
    uint32_t some_percent_100, full_percent_100; /* 1/100 % of the last 10 s */
    uint32_t dumped_kinds; /* bits by TriggerKind: dumps taken for it, by an earlier service too */
    /* The running process in it that holds most, which is named where the memory is too full; 0:
     * none. */
    uint32_t largest_id;
};

struct ml_trigger_look {
    uint64_t now_ns; /* of any clock that does not go back */
    bool whole;      /* false: only memories, and processes that were killed */
    uint64_t random;
    uint64_t tree_peak_bytes;
    const struct ml_trigger_process *processes;
    size_t processes_count;
    const struct ml_trigger_memory *memories;
    size_t memories_count;
    /* The running process that holds most, which is named where the tree has a new peak; 0:
     * none. */
    uint32_t largest_id;
    const uint64_t *dumped_ns; /* dumps that the rate limit counts, by an earlier service too */
    size_t dumped_count;
    /* The live bytes at each node of a process: an array of *out_count, which the caller frees.
     * NULL: not known. */
    uint64_t *(*live_by_node)(void *context, uint32_t id, uint32_t *out_count);
    void *context;
};

struct ml_trigger_decision {
    enum memlog_service_trigger_kind kind;
    bool dump;           /* false: the reason says why not */
    uint32_t id;         /* the process; 0: none in particular */
    uint32_t node;       /* the guilty stack, in that process; 0: not known */
    uint64_t node_bytes; /* what it holds, or has gained */
    uint32_t memory;     /* counted from 1; 0: none */
    char reason[ML_TRIGGER_REASON_BYTES];
};

struct ml_triggers;

/* For the life of the process. NULL when there is no memory. */
struct ml_triggers *
ml_triggers_new(const struct memlog_service_trigger_rules *rules, uint64_t now_ns);

/* Decide. There is a decision for every trigger that is crossed. A whole look adds one for every
 * other trigger that is on: how far it is from its threshold. Returns their number. */
size_t ml_triggers_look(
    struct ml_triggers *triggers,
    const struct ml_trigger_look *look,
    struct ml_trigger_decision out_decisions[ML_TRIGGER_DECISIONS_MAX]
);

#endif
