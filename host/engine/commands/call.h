/* A command in progress. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_CALL_H
#define MEMLOG_HOST_ENGINE_COMMANDS_CALL_H

#include <limits.h>

#include "host/engine/commands/connection.h"

/* The connection may close before the answer is there. */
struct ml_command_call {
    struct ml_engine_connection *connection; /* NULL: it is closed */
    struct ml_engine *engine;
    struct ml_call call;
    bool waits; /* for an upload to arrive */
    char path[PATH_MAX];
};

/* Only the user and root may command a host, one command at a time. NULL: refused, and the
 * connection is closed. */
struct ml_command_call *ml_command_begin(
    struct ml_engine_connection *connection, const struct ml_call *call, uint32_t version
);

/* True if the connection still waits for the answer. */
bool ml_command_end(struct ml_command_call *pending);

#endif
