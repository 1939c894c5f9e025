/* Accepting connections: who may speak to this host. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_LISTEN_H
#define MEMLOG_HOST_ENGINE_COMMANDS_LISTEN_H

#include "host/engine/state.h"

void ml_listen_init(struct ml_engine *engine);

/* Close all. */
void ml_listen_fini(struct ml_engine *engine);

#endif
