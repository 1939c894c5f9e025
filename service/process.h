/* The service's process from its start to its end. Room: service. Context: main.
 *
 * One rule: the loop and its descriptors exist before the sandbox, and not one foreign byte is read
 * before it. */
#ifndef MEMLOG_SERVICE_PROCESS_H
#define MEMLOG_SERVICE_PROCESS_H

#include <stdint.h>

#include "service/sandbox/sandbox.h"

enum ml_process_exit {
    ML_PROCESS_HOST_GONE = 0,  /* the usual end */
    ML_PROCESS_BROKEN = 1,     /* the host broke its contract, or the system refused */
    ML_PROCESS_USAGE = 2,      /* not started as a host would */
    ML_PROCESS_NO_SANDBOX = 3, /* the level asks for more than is permitted here */
    ML_PROCESS_NO_MEMORY = 4
};

/* Serve the host on ML_SERVICE_HOST_FD until it is gone, on `workers` cores, 0: as many as are good
 * here (service/workers/workers.h). Trouble is said on stderr, one line. */
enum ml_process_exit ml_process_run(const struct ml_sandbox_options *sandbox, unsigned workers);

/* One line on stderr: "memlog-service: " what detail. What cannot be said is not said. */
void ml_process_say(const char *what, const char *detail);

#endif
