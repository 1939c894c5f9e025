/* Copying of all profiles at one moment. Room: service. Context: the session's thread. */
#ifndef MEMLOG_SERVICE_SESSION_SNAPSHOT_BUILD_H
#define MEMLOG_SERVICE_SESSION_SNAPSHOT_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/snapshot/snapshot.h"

struct ml_session;

/* Copy the present state. ids_count 0: of all clients. O(stacks), not O(live blocks). The caller
 * sets `order` and `sandbox_missing`. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_session_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
);

/* The same in two steps, for a caller with other work to do while tables are copied. First
 * everything that is one figure a process. From here on the session applies nothing.
 *
 * Errors: ML_ENV_MEMORY: the session goes on. */
ML_NODISCARD enum ml_status ml_session_begin_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
);

struct ml_rest {
    void (*take)(void *context);
    void *context;
    uint32_t steps; /* things that are copied between two calls; 0: some 100 us of them */
};

/* Second, the tables that snapshot->order.content asks for; of the series alone this is
 * O(processes). Meanwhile `rest` may feed clients (ml_client_feed, _lanes, _tail, by workers or
 * not) and do nothing else. The events that it brings are queued: the snapshot is of the moment of
 * its beginning. Afterwards the session goes on, also after an error. NULL: no rest.
 *
 * Errors: ML_ENV_MEMORY: the snapshot can only be freed. */
ML_NODISCARD enum ml_status ml_session_copy_tables(
    struct ml_session *session, struct ml_snapshot *snapshot, const struct ml_rest *rest
);

#endif
