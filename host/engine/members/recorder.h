/* Members and the service: whose control page says record, who is brought to which service.
 * Room: host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_RECORDER_H
#define MEMLOG_HOST_ENGINE_MEMBERS_RECORDER_H

#include "host/engine/state.h"

/* What a control page says at the beginning of a profile. */
struct ml_control_page ml_member_control_page(
    const struct ml_engine *engine, const struct ml_member *member, bool enabled
);

/* Say in its control page whether it shall record, in its present profile. */
ML_NODISCARD enum ml_status
ml_member_enable(struct ml_engine *engine, struct ml_member *member, bool enabled);

/* After a pipe was made or closed: tell every process how large those of its children may be. */
void ml_engine_tell_pipes(struct ml_engine *engine);

/* Bring a member to the service, whose control page lets it record. Without a service it waits for
 * the next one, in its pipe: nothing of it is lost. */
void ml_member_record(struct ml_engine *engine, struct ml_member *member);

/* It is recorded no more, or never was, whatever was thought. The reason is copied into its note.
 */
void ml_member_lost(struct ml_engine *engine, struct ml_member *member, const char *reason);

/* Throw away, unread, what its pipe holds: behind it frames are whole. */
void ml_member_empty_pipe(struct ml_member *member);

/* Switch recording off everywhere: nobody reads any more. */
void ml_engine_quiet_members(struct ml_engine *engine);

/* The service is dead: nobody records until the next one has attached them, but who had not been
 * read yet and loses nothing. Whether it had any; *out_ended: how many profiles of ended processes
 * went with it. */
bool ml_engine_detach_members(struct ml_engine *engine, uint32_t *out_ended);

/* A new service serves: bring everybody who shall record to it. `ending`: how the last one ended.
 */
void ml_engine_attach_members(struct ml_engine *engine, const char *ending);

#endif
