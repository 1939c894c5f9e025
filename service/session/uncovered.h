/* The line of a dump that names the processes whose memory it does not show. Room: service.
 * Context: one thread. */
#ifndef MEMLOG_SERVICE_SESSION_UNCOVERED_H
#define MEMLOG_SERVICE_SESSION_UNCOVERED_H

#include <stdbool.h>

#include "service/snapshot/snapshot.h"

/* Make snapshot->uncovered from its processes and from those without memlog. The process with most
 * private memory is named with its reason, the others are counted. Empty: none. False: no memory,
 * and it stays empty. */
bool ml_snapshot_uncover(struct ml_snapshot *snapshot);

#endif
