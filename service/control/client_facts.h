/* What the host says of a process, as its messages have it, into the session. Room: service.
 * Context: one thread.
 *
 * One rule: nothing here costs a profile. What finds no memory is noted as the client's trouble,
 * and its figures are as right as before. */
#ifndef MEMLOG_SERVICE_CONTROL_CLIENT_FACTS_H
#define MEMLOG_SERVICE_CONTROL_CLIENT_FACTS_H

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/session/session.h"

/* Role, name, command line, executable, memory, and why its profile cannot be complete. An empty
 * executable says that the host could not see it, an empty trouble that it knows of none: what was
 * known stays. Owner: `facts` is borrowed and copied. */
void ml_client_take_facts(
    struct ml_client *client, const struct memlog_service_process_facts *facts
);

/* What its constructor found of its allocator. Owner: as above. */
void ml_client_take_allocator(
    struct ml_client *client, const struct memlog_service_allocator_facts *facts
);

#endif
