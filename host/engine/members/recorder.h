/* Members and the service: whose control page says record, who is brought to which service.
 * Room: host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_RECORDER_H
#define MEMLOG_HOST_ENGINE_MEMBERS_RECORDER_H

#include "host/engine/state.h"

/* The control page at the beginning of a profile. */
struct ml_control_page ml_member_control_page(
    const struct ml_engine *engine, const struct ml_member *member, bool enabled
);

/* Write into its control page whether it records, in its present profile. */
ML_NODISCARD enum ml_status
ml_member_enable(struct ml_engine *engine, struct ml_member *member, bool enabled);

/* After a pipe was made or closed: tell every process how large its children's pipes may be. */
void ml_engine_tell_pipes(struct ml_engine *engine);

/* Add a recording member to the service. Without a service its events wait in its pipe for the next
 * one. */
void ml_member_record(struct ml_engine *engine, struct ml_member *member);

/* It is not recorded any more, or never was. The reason is copied into its note. */
void ml_member_lost(struct ml_engine *engine, struct ml_member *member, const char *reason);

/* Throw away what its pipe holds. Frames that follow are whole. */
void ml_member_empty_pipe(struct ml_member *member);

/* Stop recording everywhere: no service reads any more. */
void ml_engine_quiet_members(struct ml_engine *engine);

/* The service is dead. Members that it had read stop recording until the next one attaches them.
 * Whether it had any; *out_ended: how many profiles of ended processes are lost. */
bool ml_engine_detach_members(struct ml_engine *engine, uint32_t *out_ended);

/* A new service serves: attach every member that records. `ending`: how the last one ended. */
void ml_engine_attach_members(struct ml_engine *engine, const char *ending);

#endif
