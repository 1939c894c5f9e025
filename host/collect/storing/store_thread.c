#include "host/collect/storing/store_thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <ev.h>

#include "base/threads/own_thread.h"

enum { STACK_BYTES = 1 << 20 };

/* At the end: the time of the job that it is at, and between two interruptions after it. */
enum { GRACE_MS = 2000, LOOK_MS = 10, NS_PER_MS = 1000000 };

STAILQ_HEAD(jobs, ml_store_job);

struct ml_store_thread {
    struct ev_loop *loop;
    struct ml_store *store; /* the thread's, but for its interruption */
    pthread_t thread;
    ev_async told;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct jobs waiting; /* mutex */
    struct jobs done;    /* mutex */
    bool is_ending;      /* mutex */
    bool has_ended;      /* mutex: it does not use the store any more */
};

static void lock(struct ml_store_thread *thread) {
    (void)pthread_mutex_lock(&thread->mutex);
}

static void unlock(struct ml_store_thread *thread) {
    (void)pthread_mutex_unlock(&thread->mutex);
}

/* NULL: there is none. The mutex is held. */
static struct ml_store_job *take_first(struct jobs *jobs) {
    struct ml_store_job *job = STAILQ_FIRST(jobs);
    if (job != NULL) {
        STAILQ_REMOVE_HEAD(jobs, next);
    }
    return job;
}

/* ---- the thread */

static void do_job(struct ml_store *store, struct ml_store_job *job) {
    job->error.text[0] = '\0';
    switch (job->kind) {
    case ML_STORE_ADD:
        job->status = ml_store_add(store, job->items, job->items_count, &job->error);
        break;
    case ML_STORE_REMOVE:
        job->status = ml_store_remove(store, job->team, job->guid, &job->error);
        break;
    case ML_STORE_UPKEEP:
        job->status = ml_store_upkeep(store, job->before_ms, &job->kept, &job->error);
        break;
    }
}

static void *run(void *context) {
    struct ml_store_thread *thread = context;
    lock(thread);
    while (!thread->is_ending) {
        struct ml_store_job *job = take_first(&thread->waiting);
        if (job == NULL) {
            (void)pthread_cond_wait(&thread->wake, &thread->mutex);
            continue;
        }
        unlock(thread);
        do_job(thread->store, job);
        lock(thread);
        STAILQ_INSERT_TAIL(&thread->done, job, next);
        ev_async_send(thread->loop, &thread->told);
    }
    thread->has_ended = true;
    unlock(thread);
    return NULL;
}

/* ---- the loop's side */

static void tell(struct ml_store_thread *thread) {
    struct ml_store_job *job = NULL;
    do {
        lock(thread);
        job = take_first(&thread->done);
        unlock(thread);
        if (job != NULL) {
            job->on_done(job->context, job);
        }
    } while (job != NULL);
}

static void on_told(struct ev_loop *loop, ev_async *watcher, int events) {
    (void)loop;
    (void)events;
    tell(watcher->data);
}

void ml_store_thread_do(struct ml_store_thread *thread, struct ml_store_job *job) {
    lock(thread);
    STAILQ_INSERT_TAIL(&thread->waiting, job, next);
    (void)pthread_cond_signal(&thread->wake);
    unlock(thread);
}

/* ---- birth and end */

struct ml_store_thread *ml_store_thread_new(struct ev_loop *loop, struct ml_store *store) {
    struct ml_store_thread *thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return NULL;
    }
    thread->loop = loop;
    thread->store = store;
    STAILQ_INIT(&thread->waiting);
    STAILQ_INIT(&thread->done);
    (void)pthread_mutex_init(&thread->mutex, NULL);
    (void)pthread_cond_init(&thread->wake, NULL);
    ev_async_init(&thread->told, on_told);
    thread->told.data = thread;
    ev_async_start(loop, &thread->told);
    if (!ml_own_thread_begin(STACK_BYTES, run, thread, &thread->thread)) {
        ev_async_stop(loop, &thread->told);
        free(thread);
        return NULL;
    }
    return thread;
}

/* An interruption ends what is under way and not what begins after it: so it comes again and again.
 */
static void wait_for_end(struct ml_store_thread *thread) {
    const struct timespec pause = {.tv_nsec = LOOK_MS * NS_PER_MS};
    bool has_ended = false;
    for (unsigned waited_ms = 0; !has_ended; waited_ms += LOOK_MS) {
        lock(thread);
        has_ended = thread->has_ended;
        unlock(thread);
        if (!has_ended && waited_ms >= GRACE_MS) {
            ml_store_interrupt(thread->store);
        }
        if (!has_ended) {
            (void)nanosleep(&pause, NULL);
        }
    }
    (void)pthread_join(thread->thread, NULL);
}

void ml_store_thread_free(struct ml_store_thread *take_thread) {
    struct ml_store_thread *thread = take_thread;
    if (thread == NULL) {
        return;
    }
    lock(thread);
    thread->is_ending = true;
    (void)pthread_cond_signal(&thread->wake);
    unlock(thread);
    wait_for_end(thread);
    ev_async_stop(thread->loop, &thread->told);
    tell(thread);
    (void)pthread_cond_destroy(&thread->wake);
    (void)pthread_mutex_destroy(&thread->mutex);
    free(thread);
}
