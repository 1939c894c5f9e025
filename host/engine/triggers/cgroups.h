/* Memories with a limit, for the triggers: the control groups of running members, which member is
 * in which, and the machine. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_TRIGGERS_CGROUPS_H
#define MEMLOG_HOST_ENGINE_TRIGGERS_CGROUPS_H

#include "host/engine/state.h"
#include "host/process/cgroup_info.h"

/* Control groups of one tree, and the machine. More are not looked at. */
enum { ML_TRIGGER_MEMORIES = MEMLOG_SERVICE_OBSERVATION_MEMORIES_LIMIT };

struct ml_cgroups {
    struct ml_cgroup *items; /* of the members up to members_grouped; of one that is gone the folder
                                is "" */
    unsigned count;
    bool has_left_out; /* there were more, and it was said */
    uint32_t members_grouped;
    uint32_t next_asked; /* whose group is read again */
    /* What was dumped, for a later service: bits by kind. [0] is the machine, items[] follow. */
    uint32_t dumped[ML_TRIGGER_MEMORIES];
    uint32_t observed[ML_TRIGGER_MEMORIES]; /* the place of each in the last look */
};

void ml_cgroups_fini(struct ml_engine *engine);

/* Read every memory that has a limit, if a rule is about them. Returns their number. *out_ids holds
 * their lists; the caller frees it. */
uint32_t ml_cgroups_look(
    struct ml_engine *engine,
    struct memlog_service_observed_memory out_memories[ML_TRIGGER_MEMORIES],
    uint32_t **out_ids
);

/* A dump was decided on for the memory at that place of the last look, counted from 1; 0: for none.
 */
void ml_cgroups_remember(
    struct ml_engine *engine, uint32_t memory, enum memlog_service_trigger_kind kind
);

#endif
