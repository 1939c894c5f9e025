/* The control socket's messages: Hello, Forked, NotProfiled. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_CLIENTS_H
#define MEMLOG_HOST_ENGINE_COMMANDS_CLIENTS_H

#include "mojom_like_idl/contracts/heap_client_mojom.h"

/* The context is a struct ml_engine_connection. */
extern const struct memlog_client_host_for_client_handlers ml_engine_client_handlers;

#endif
