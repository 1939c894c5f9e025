#include "service/workers/workers.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct ml_workers {
    unsigned count; /* set once; with the caller */
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* there is work, or the end */
    pthread_cond_t over;   /* nobody is at work any more; or: another thread has begun */
    /* Guarded by the lock: */
    bool open;        /* there is a piece of work that threads may join */
    bool ending;      /* */
    unsigned begun;   /* threads that have come up */
    unsigned at_work; /* threads that joined and have not left */
    unsigned next_id; /* of the next thread that comes up */
    uint64_t pieces;  /* so far: nobody joins one twice */
    /* Written before `open` is, read by those who joined: */
    ml_work *work;
    void *context;
    uint32_t items;
    atomic_uint_least32_t next; /* item that nobody has taken */
    pthread_t threads[ML_WORKERS_MAX];
};

unsigned ml_workers_default(void) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0) {
        return 1; /* more cores than the set can name, or none that it may tell: rare either way */
    }
    const int count = CPU_COUNT(&cores);
    if (count < 1) {
        return 1;
    }
    return count < ML_WORKERS_DEFAULT_MAX ? (unsigned)count : ML_WORKERS_DEFAULT_MAX;
}

static void do_items(struct ml_workers *workers, unsigned worker) {
    for (;;) {
        /* Relaxed: what the items need was handed over with the lock. */
        const uint32_t item = atomic_fetch_add_explicit(&workers->next, 1, memory_order_relaxed);
        if (item >= workers->items) {
            return;
        }
        workers->work(workers->context, item, worker);
    }
}

static void *serve(void *argument) {
    struct ml_workers *workers = argument;
    pthread_mutex_lock(&workers->lock);
    const unsigned worker = workers->next_id++;
    uint64_t joined = 0;
    workers->begun++;
    pthread_cond_signal(&workers->over);
    while (!workers->ending) {
        if (!workers->open || joined == workers->pieces) {
            pthread_cond_wait(&workers->wanted, &workers->lock);
            continue;
        }
        joined = workers->pieces;
        workers->at_work++;
        pthread_mutex_unlock(&workers->lock);
        do_items(workers, worker);
        pthread_mutex_lock(&workers->lock);
        workers->at_work--;
        if (workers->at_work == 0) {
            pthread_cond_signal(&workers->over);
        }
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

struct ml_workers *ml_workers_new(unsigned count) {
    struct ml_workers *workers = calloc(1, sizeof(*workers));
    if (workers == NULL) {
        return NULL;
    }
    (void)pthread_mutex_init(&workers->lock, NULL);
    (void)pthread_cond_init(&workers->wanted, NULL);
    (void)pthread_cond_init(&workers->over, NULL);
    workers->count = 1;
    workers->next_id = 1;
    while (workers->count < count && workers->count < ML_WORKERS_MAX &&
           pthread_create(&workers->threads[workers->count], NULL, serve, workers) == 0) {
        workers->count++;
    }
    pthread_mutex_lock(&workers->lock);
    while (workers->begun < workers->count - 1) {
        pthread_cond_wait(&workers->over, &workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return workers;
}

void ml_workers_free(struct ml_workers *take_workers) {
    if (take_workers == NULL) {
        return;
    }
    pthread_mutex_lock(&take_workers->lock);
    take_workers->ending = true;
    pthread_cond_broadcast(&take_workers->wanted);
    pthread_mutex_unlock(&take_workers->lock);
    for (unsigned i = 1; i < take_workers->count; i++) {
        (void)pthread_join(take_workers->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&take_workers->over);
    (void)pthread_cond_destroy(&take_workers->wanted);
    (void)pthread_mutex_destroy(&take_workers->lock);
    free(take_workers);
}

unsigned ml_workers_count(const struct ml_workers *workers) {
    return workers == NULL ? 1 : workers->count;
}

void ml_workers_run(struct ml_workers *workers, ml_work *work, void *context, uint32_t items) {
    if (ml_workers_count(workers) == 1 || items < 2) {
        for (uint32_t i = 0; i < items; i++) {
            work(context, i, 0);
        }
        return;
    }
    const unsigned helpers = items - 1 < workers->count - 1 ? items - 1 : workers->count - 1;
    pthread_mutex_lock(&workers->lock);
    workers->work = work;
    workers->context = context;
    workers->items = items;
    atomic_store_explicit(&workers->next, 0, memory_order_relaxed);
    workers->pieces++;
    workers->open = true;
    for (unsigned i = 0; i < helpers; i++) {
        pthread_cond_signal(&workers->wanted);
    }
    pthread_mutex_unlock(&workers->lock);
    do_items(workers, 0);
    /* Who has not come by now is not waited for: a machine may be too busy to let it. */
    pthread_mutex_lock(&workers->lock);
    workers->open = false;
    while (workers->at_work > 0) {
        pthread_cond_wait(&workers->over, &workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
}
