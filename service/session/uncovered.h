/* Whose memory a dump cannot tell of, in one line. Room: service. Context: one thread. */
#ifndef MEMLOG_SERVICE_SESSION_UNCOVERED_H
#define MEMLOG_SERVICE_SESSION_UNCOVERED_H

#include <stdbool.h>

#include "service/snapshot/snapshot.h"

/* Put snapshot->uncovered together from its processes and from who ran without memlog: the process
 * with most private memory by its reason, the others by their number. Empty: nobody. False: there
 * is no memory; it stays empty. */
bool ml_snapshot_uncover(struct ml_snapshot *snapshot);

#endif
