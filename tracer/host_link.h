/* What a tracer says to its host (mojom_like_idl/contracts/heap_tracer.mojom). Room: tracer.
 *
 * One rule: the tracer only speaks. A host that has gone is no error: the work is brought to its
 * end. */
#ifndef MEMLOG_TRACER_HOST_LINK_H
#define MEMLOG_TRACER_HOST_LINK_H

#include <stdint.h>
#include <sys/types.h>

#include "mojom_like_idl/contracts/heap_tracer_mojom.h"

enum { ML_HOST_LINK_FD = 3 };

/* The process's connection. Owner: the descriptor is borrowed. */
void ml_host_link_connected(pid_t pid, int connection_fd);

void ml_host_link_finished(
    pid_t pid,
    enum memlog_tracer_outcome outcome,
    const char *reason,
    const struct memlog_tracer_traced *traced
);

#endif
