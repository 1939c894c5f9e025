/* The memories that have a limit, for the triggers: the control groups of those that run, who of
 * them is in which, and the machine. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_TRIGGERS_CGROUPS_H
#define MEMLOG_HOST_ENGINE_TRIGGERS_CGROUPS_H

#include "host/engine/state.h"
#include "host/process/cgroup_info.h"

/* Control groups of one tree, and the machine; more are not looked at. */
enum { ML_TRIGGER_MEMORIES = MEMLOG_SERVICE_OBSERVATION_MEMORIES_LIMIT };

struct ml_cgroups {
    struct ml_cgroup *items; /* of the members up to members_grouped; of one that is gone the folder
                                is "" */
    unsigned count;
    bool has_left_out; /* there were more, and it was said */
    uint32_t members_grouped;
    uint32_t next_asked; /* who is asked for his group again */
    /* What was dumped, for a service that follows on this one: bits by kind; [0] is the machine,
     * items[] follow. */
    uint32_t dumped[ML_TRIGGER_MEMORIES];
    uint32_t observed[ML_TRIGGER_MEMORIES]; /* which of those stood where in the last look */
};

void ml_cgroups_fini(struct ml_engine *engine);

/* Every memory that has a limit, if a rule wants them looked at; their number. *out_ids: what their
 * lists point into, for the caller to free. */
uint32_t ml_cgroups_look(
    struct ml_engine *engine,
    struct memlog_service_observed_memory out_memories[ML_TRIGGER_MEMORIES],
    uint32_t **out_ids
);

/* A dump was decided on for the memory at that place of the last look, from 1; 0: for none. */
void ml_cgroups_remember(
    struct ml_engine *engine, uint32_t memory, enum memlog_service_trigger_kind kind
);

#endif
