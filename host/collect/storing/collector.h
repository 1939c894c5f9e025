/* Takes accepted reports from the ledger into the store: has them read, a few at a time, and adds
 * what was read in batches. Room: host. Context: the loop's thread; the store has one of its own
 * (host/collect/storing/store_thread.h).
 *
 * One rule: the ledger says what is to be done, so nothing is lost with this process. A report
 * counts as stored when the store has it for sure; in doubt it is added again, which changes
 * nothing. */
#ifndef MEMLOG_HOST_COLLECT_STORING_COLLECTOR_H
#define MEMLOG_HOST_COLLECT_STORING_COLLECTOR_H

#include "base/error_message.h"
#include "host/collect/ledger.h"
#include "host/collect/store.h"
#include "host/collect/storing/removals.h"

struct ev_loop;
struct ml_collector;

struct ml_collector_setup {
    struct ev_loop *loop; /* the default one */
    struct ml_ledger *ledger;
    struct ml_store *store; /* the collector's until ml_collector_free */
    const char *analyzer_path;
    uint64_t retention_s; /* reports that came earlier are removed; 0: none are */
    bool ends_when_idle;  /* end the loop when nothing is left to do */
    /* For people: something went wrong. */
    void (*on_trouble)(void *context, const char *text);
    void *context;
};

/* Begins at once with what the ledger has. NULL: no memory, or no thread. */
struct ml_collector *ml_collector_new(const struct ml_collector_setup *setup);

/* What is read meanwhile is read again by the next one, and the store is at nothing afterwards:
 * what it does not end within two seconds is interrupted. NULL is allowed. */
void ml_collector_free(struct ml_collector *take_collector);

/* The ledger has more. */
void ml_collector_wake(struct ml_collector *collector);

/* Remove a report for good: from its reading, the store, the spool and the ledger
 * (host/collect/storing/removals.h). False: no memory, nothing comes. */
bool ml_collector_remove(
    struct ml_collector *collector,
    const struct ml_entry *entry,
    ml_on_removed *on_removed,
    void *context
);

/* Tries of this process that the store did not take. */
uint64_t ml_collector_store_failures(const struct ml_collector *collector);

#endif
