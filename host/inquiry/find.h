/* Which of this user's running memlogs is meant. Room: host. Context: a command's own process;
 * waits for answers. */
#ifndef MEMLOG_HOST_INQUIRY_FIND_H
#define MEMLOG_HOST_INQUIRY_FIND_H

#include "base/error_message.h"
#include "host/sockets/socket_directory.h"
#include "ipc/wire/ml_status.h"

/* The command socket of the run whose dumps go to `folder`. `host`: of those at that socket alone;
 * NULL: of all that this user has.
 *
 * Errors: ML_ENV_SYSTEM: there is no such folder; ML_ENV_MISSING: no run that answers has it; each
 *         with an error message. */
ML_NODISCARD enum ml_status ml_inquiry_find(
    const char *folder,
    const char *host,
    struct ml_command_socket *out_socket,
    struct ml_error_message *error
);

#endif
