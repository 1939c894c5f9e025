/* What stays of a process that was lost for want of memory: its sums and its largest stacks. Room:
 * service. Context: the session's thread, between rounds.
 *
 * One rule: no sum changes. The other stacks become one, ML_TOP_STACKS_OTHERS. */
#ifndef MEMLOG_SERVICE_SESSION_TOP_STACKS_H
#define MEMLOG_SERVICE_SESSION_TOP_STACKS_H

#include "service/heap/stack_store.h"
#include "service/heap/tracker.h"

enum {
    /* More than a person reads; with the deepest stacks a few MiB. */
    ML_TOP_STACKS_CELLS = 256
};

#define ML_TOP_STACKS_OTHERS "(stacks that memlog-service had no memory to keep)"

/* Replace both by smaller ones, with other node ids and cell numbers. The tracker has no live block
 * and gets no more. Errors: ML_ENV_MEMORY, ML_PEER_LIMIT: nothing has changed. */
ML_NODISCARD enum ml_status
ml_top_stacks_keep(struct ml_stack_store *stacks, struct ml_tracker *tracker);

#endif
