/* Copying all profiles as they are at one moment. Room: service. Context: the session's thread. */
#ifndef MEMLOG_SERVICE_SESSION_SNAPSHOT_BUILD_H
#define MEMLOG_SERVICE_SESSION_SNAPSHOT_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/snapshot/snapshot.h"

struct ml_session;

/* Copy the present state. ids_count 0: all clients. O(stacks), not O(live blocks). The caller fills
 * in gaps, not_profiled, reason, program, now, sandbox_missing. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_session_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
);

/* The same in two steps, for a caller who has other work to do while tables are copied: now
 * everything that is one figure a process, and from here on the session holds still, ...
 *
 * Errors: ML_ENV_MEMORY; it does not hold still then. */
ML_NODISCARD enum ml_status ml_session_begin_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
);

struct ml_rest {
    void (*take)(void *context);
    void *context;
    uint32_t steps; /* things copied between two rests; 0: some 100 us of them */
};

/* ... and now the tables, as far as snapshot->order.content asks for them (the caller's choice; of
 * the series alone it is O(processes)). Meanwhile `rest` may feed clients (ml_client_feed, _lanes,
 * _tail, by workers or not) and nothing else: what it brings is queued, and the snapshot is of the
 * moment when it was begun. Then the session goes on, also after an error. NULL: no rest.
 *
 * Errors: ML_ENV_MEMORY; the snapshot is good for nothing but to be freed. */
ML_NODISCARD enum ml_status ml_session_copy_tables(
    struct ml_session *session, struct ml_snapshot *snapshot, const struct ml_rest *rest
);

#endif
