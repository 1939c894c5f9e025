/* The processes that are not recorded, as a dump has them. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_LIST_DUMP_H
#define MEMLOG_HOST_ENGINE_LIST_DUMP_H

#include "host/engine/state.h"

/* "kernel events" or "walks". */
const char *ml_list_source(const struct ml_engine *engine);

/* The list for a dump; borrows. Undone by ml_list_order_fini. */
void ml_list_order(struct ml_engine *engine, struct memlog_service_dump_order *out_order);
void ml_list_order_fini(struct memlog_service_dump_order *order);

#endif
