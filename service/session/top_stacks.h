/* What stays of a process that was lost for want of memory: its sums, and the stacks that hold
 * most. Room: service. Context: the session's thread, between rounds.
 *
 * One rule: no sum changes. Stacks that go are told as one, ML_TOP_STACKS_OTHERS. */
#ifndef MEMLOG_SERVICE_SESSION_TOP_STACKS_H
#define MEMLOG_SERVICE_SESSION_TOP_STACKS_H

#include "service/heap/stack_store.h"
#include "service/heap/tracker.h"

enum {
    /* With their stacks: more than a person reads, at most a few MiB with the deepest stacks. */
    ML_TOP_STACKS_CELLS = 256
};

#define ML_TOP_STACKS_OTHERS "(stacks that memlog-service had no memory to keep)"

/* Both are made anew, with that; node ids and cells' numbers are others then. No block is live in
 * the tracker, and none comes any more. Errors: ML_ENV_MEMORY, ML_PEER_LIMIT; nothing is changed
 * then. */
ML_NODISCARD enum ml_status
ml_top_stacks_keep(struct ml_stack_store *stacks, struct ml_tracker *tracker);

#endif
