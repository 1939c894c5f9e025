/* What the command socket answers: `memlog ps`, `dump`, `upload`, `env`. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_SERVER_H
#define MEMLOG_HOST_ENGINE_COMMANDS_SERVER_H

#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* The context is a struct ml_engine_connection. */
extern const struct memlog_host_host_handlers ml_engine_command_handlers;

#endif
