/* Private to the command socket's handlers. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_INTERNAL_H
#define MEMLOG_HOST_ENGINE_COMMANDS_INTERNAL_H

#include <limits.h>

#include "host/engine/state.h"

/* A command that waits for the service. The connection may go before the answer comes. */
struct ml_command_call {
    struct ml_engine_connection *connection; /* NULL: nobody waits any more */
    struct ml_engine *engine;
    struct ml_call call;
    bool waits; /* for an upload to arrive */
    char path[PATH_MAX];
};

/* Only the user himself and root command a host; one command at a time. NULL: refused, and the
 * connection is closed. */
struct ml_command_call *ml_command_begin(
    struct ml_engine_connection *connection, const struct ml_call *call, uint32_t version
);

/* True if somebody still waits for the answer. */
bool ml_command_end(struct ml_command_call *pending);

/* server_control.c */
void ml_command_on_control(
    void *context, const struct ml_call *call, const struct memlog_host_control_request *request
);

#endif
