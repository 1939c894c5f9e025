/* Removes reports for good, one after the other: from their reading, from the store with their part
 * of all sums, from the spool, and from the ledger last. Room: host. Context: the loop's thread.
 *
 * One rule: a report is in the ledger until nothing else of it is anywhere. One at a time: the next
 * report of the same name can only come when the one before is gone, and stays. */
#ifndef MEMLOG_HOST_COLLECT_STORING_REMOVALS_H
#define MEMLOG_HOST_COLLECT_STORING_REMOVALS_H

#include "base/error_message.h"
#include "host/collect/ledger.h"

struct ml_removals;
struct ml_store_thread;

/* What became of it: ML_OK: it is gone; the store's errors, or ML_ENV_SYSTEM, with an error
 * message: the ledger has it still. Once, from the loop. */
typedef void
ml_on_removed(void *context, enum ml_status status, const struct ml_error_message *error);

struct ml_removals_setup {
    struct ml_ledger *ledger;
    struct ml_store_thread *thread;
    /* Forget what is on its way to the store. True: the store is at it, and may have it after that.
     */
    bool (*drop)(void *context, const struct ml_entry *entry);
    void *context;
};

/* NULL: no memory. Owner: ml_removals_free, when the thread is no more. */
struct ml_removals *ml_removals_new(const struct ml_removals_setup *setup);

/* False: no memory, nothing comes. */
bool ml_removals_add(
    struct ml_removals *removals,
    const struct ml_entry *entry,
    ml_on_removed *on_removed,
    void *context
);

/* No other is begun, and nobody hears of any. NULL is allowed. */
void ml_removals_stop(struct ml_removals *removals);
void ml_removals_free(struct ml_removals *take_removals);

#endif
