#include "host/engine/commands/call.h"

#include <stdlib.h>
#include <unistd.h>

struct ml_command_call *ml_command_begin(
    struct ml_engine_connection *connection, const struct ml_call *call, uint32_t version
) {
    bool permitted = call->peer.uid == geteuid() || call->peer.uid == 0;
    if (!permitted || version != MEMLOG_HOST_HOST_VERSION || connection->waiting != NULL) {
        ml_connection_close(connection);
        return NULL;
    }
    struct ml_command_call *pending = calloc(1, sizeof(*pending));
    if (pending == NULL) {
        ml_connection_close(connection);
        return NULL;
    }
    *pending = (struct ml_command_call
    ){.connection = connection, .engine = connection->engine, .call = *call};
    connection->waiting = &pending->connection;
    return pending;
}

bool ml_command_end(struct ml_command_call *pending) {
    if (pending->connection == NULL) {
        return false;
    }
    pending->connection->waiting = NULL;
    return true;
}
