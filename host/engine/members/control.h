/* Starting and stopping the recording of one process, as somebody has asked. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_CONTROL_H
#define MEMLOG_HOST_ENGINE_MEMBERS_CONTROL_H

#include "host/engine/state.h"

/* Record this process from now on, in a clean profile. `sampling_bytes` 0: with the run's settings.
 * `on_done` is called once, perhaps before this returns. */
void ml_engine_start_member(
    struct ml_engine *engine,
    struct ml_member *member,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
);

/* Record it no more; its profile stays as it is at this moment. */
void ml_engine_stop_member(
    struct ml_engine *engine, struct ml_member *member, ml_control_done *on_done, void *context
);

/* It is another one than it was: if that must not be recorded, stop. */
void ml_engine_stop_forbidden(struct ml_engine *engine, struct ml_member *member);

#endif
