/* Has the store do each minute what is due, and removes reports that are too old. Room: host.
 * Context: the loop's thread.
 *
 * One rule: what is too old goes a little at a time, as uploads are taken in between. */
#ifndef MEMLOG_HOST_COLLECT_STORING_RETENTION_H
#define MEMLOG_HOST_COLLECT_STORING_RETENTION_H

#include "host/collect/ledger.h"

struct ev_loop;
struct ml_removals;
struct ml_retention;
struct ml_store_thread;

struct ml_retention_setup {
    struct ev_loop *loop;
    struct ml_ledger *ledger;
    struct ml_store_thread *thread;
    struct ml_removals *removals;
    uint64_t retention_s; /* reports that came earlier are removed; 0: none are */
    /* For people: something went wrong. */
    void (*on_trouble)(void *context, const char *text);
    void *context;
};

/* NULL: no memory. Owner: ml_retention_free, when the thread is no more. */
struct ml_retention *ml_retention_new(const struct ml_retention_setup *setup);

/* Nothing more is begun. NULL is allowed. */
void ml_retention_stop(struct ml_retention *retention);
void ml_retention_free(struct ml_retention *take_retention);

#endif
