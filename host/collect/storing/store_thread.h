/* The thread that the store belongs to: the loop hands jobs over and hears what came of them, and
 * waits for neither disk nor server. Room: host. Context: the loop's thread.
 *
 * One rule: jobs are done one after the other, in the order in which they came. What a job points
 * to is left alone until it is told. */
#ifndef MEMLOG_HOST_COLLECT_STORING_STORE_THREAD_H
#define MEMLOG_HOST_COLLECT_STORING_STORE_THREAD_H

#include <sys/queue.h>

#include "base/error_message.h"
#include "host/collect/store.h"

struct ev_loop;
struct ml_store_thread;

/* One of the calls of host/collect/store.h. All zero but for what is said here. */
struct ml_store_job {
    enum ml_store_job_kind { ML_STORE_ADD, ML_STORE_REMOVE, ML_STORE_UPKEEP } kind;
    const struct ml_store_item *items; /* to add */
    size_t items_count;
    const char *team, *guid; /* to remove */
    uint64_t before_ms;      /* upkeep's */

    /* Once, from the loop. The job may be handed over again in it. */
    void (*on_done)(void *context, struct ml_store_job *job);
    void *context;

    enum ml_status status;
    struct ml_error_message error;
    struct ml_store_kept kept; /* upkeep's */
    STAILQ_ENTRY(ml_store_job) next;
};

/* NULL: no thread or no memory. Owner: ml_store_thread_free; before the store is closed. */
struct ml_store_thread *ml_store_thread_new(struct ev_loop *loop, struct ml_store *store);

/* Borrowed until it is told. */
void ml_store_thread_do(struct ml_store_thread *thread, struct ml_store_job *job);

/* The job that it is at has two seconds and is interrupted then; those that wait are not begun.
 * What was done is told in here; nothing is told later. NULL is allowed. */
void ml_store_thread_free(struct ml_store_thread *take_thread);

#endif
