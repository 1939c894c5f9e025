/* `memlog start`, `stop` and `rate` as the command socket answers them: one answer for all their
 * processes. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_SERVER_CONTROL_H
#define MEMLOG_HOST_ENGINE_COMMANDS_SERVER_CONTROL_H

#include "mojom_like_idl/contracts/heap_host_mojom.h"

void ml_command_on_control(
    void *context, const struct ml_call *call, const struct memlog_host_control_request *request
);

#endif
