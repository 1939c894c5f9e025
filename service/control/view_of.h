/* What the host saw of a process, as its message has it and as the session keeps it. Room: service.
 * Context: one thread. */
#ifndef MEMLOG_SERVICE_CONTROL_VIEW_OF_H
#define MEMLOG_SERVICE_CONTROL_VIEW_OF_H

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/snapshot/host_view.h"

/* A copy. NULL: no memory. Owner: the caller's. */
struct ml_host_view *ml_view_of(const struct memlog_service_process_view *message);

#endif
