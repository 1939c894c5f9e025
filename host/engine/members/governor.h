/* --overhead: each process's sampling interval keeps what memlog costs it within the promise. Room:
 * host.
 *
 * One rule: the host alone decides. A client counts what it does; the service passes that on; the
 * processor time is the kernel's word. The policy is host/policy/overhead.h. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_GOVERNOR_H
#define MEMLOG_HOST_ENGINE_MEMBERS_GOVERNOR_H

#include <ev.h>

#include "host/engine/state.h"

struct ml_governor {
    ev_timer timer;
    bool is_asking;
};

void ml_governor_init(struct ml_engine *engine);
void ml_governor_fini(struct ml_engine *engine);

/* The process is new, and its client has counted nothing yet. */
void ml_governor_begin(struct ml_engine *engine, struct ml_member *member);

/* At what interval a process is recorded that has none of its own. */
uint64_t ml_governor_interval(const struct ml_engine *engine, const struct ml_member *member);

#endif
