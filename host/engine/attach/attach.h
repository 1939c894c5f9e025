/* Processes that were not started under memlog: attached to, and left as they were. Room: host.
 * What callers see of it stands in engine.h. */
#ifndef MEMLOG_HOST_ENGINE_ATTACH_ATTACH_H
#define MEMLOG_HOST_ENGINE_ATTACH_ATTACH_H

#include "host/engine/attach/jobs.h"

void ml_attach_init(struct ml_engine *engine);
void ml_attach_fini(struct ml_engine *engine);

/* Leave a process as it was. It records nothing from now on. */
void ml_attach_detach(
    struct ml_engine *engine,
    pid_t pid,
    uint64_t start_ticks,
    ml_control_done *on_done,
    void *context
);

/* The timer of ml_engine_let_go. */
void ml_attach_let_go_init(struct ml_engine *engine);

/* Notice when no process that was attached to runs any more. An exec is no end. */
void ml_attach_left_init(struct ml_engine *engine);
void ml_attach_left_fini(struct ml_engine *engine);
void ml_attach_left_add(struct ml_engine *engine, pid_t pid, uint64_t start_ticks);

/* A member's process has ended, or runs another image. */
void ml_attach_member_ended(struct ml_engine *engine, const struct ml_member *member);

#endif
