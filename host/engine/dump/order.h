/* What a dump says of the run beside its profiles. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_DUMP_ORDER_H
#define MEMLOG_HOST_ENGINE_DUMP_ORDER_H

#include "host/engine/dump/jobs.h"

/* What the service is to write; borrows from the job and the engine. Undone by ml_dump_order_fini.
 */
void ml_dump_order_init(
    struct ml_engine *engine,
    const struct ml_dump_job *job,
    struct memlog_service_dump_order *out_order
);
void ml_dump_order_fini(struct memlog_service_dump_order *order);

#endif
