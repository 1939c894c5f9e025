/* Dumps of a fleet on their way: into a store, or as bodies that a machine would send. Room: tests.
 * Context: one thread. */
#ifndef MEMLOG_TESTS_HOST_MILL_FEED_H
#define MEMLOG_TESTS_HOST_MILL_FEED_H

#include <stdio.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"
#include "tests/host/mill/fleet.h"

struct fed {
    uint64_t dumps, rows;
};

/* Dumps `from` to below `until`, `batch` in one transaction, as the collector does it. Stacks have
 * the ids that a collector of `spool` would give. Errors: the store's. */
ML_NODISCARD enum ml_status feed_store(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    uint64_t from,
    uint64_t until,
    size_t batch,
    const char *store,
    const char *spool,
    struct fed *out_fed,
    struct ml_error_message *error
);

/* Each as a line "BYTES GUID" and a trace in memlog's form of that many bytes. False: errno. */
bool feed_bodies(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    uint64_t from,
    uint64_t until,
    FILE *out
);

#endif
