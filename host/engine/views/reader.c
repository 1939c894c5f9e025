#include "host/engine/views/reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "host/process/clock.h"

/* At the end a reading has this long. */
enum { JOIN_SECONDS = 2 };

enum { STACK_BYTES = 256 << 10 };

struct question {
    STAILQ_ENTRY(question) next;
    uint32_t id;
    uint64_t serial;
    pid_t pid;
    struct ml_process_view view; /* once it was read */
};

STAILQ_HEAD(questions, question);

struct ml_view_reader {
    struct ml_view_reader_setup setup;
    ev_async told;
    pthread_t thread;
    uint64_t last_serial;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct questions waiting; /* mutex */
    struct questions read;    /* mutex */
    bool is_closed;           /* mutex: the loop's side is gone */
    bool has_ended;           /* mutex: the thread's is */
};

static void free_question(struct question *question) {
    ml_memory_pages_fini(&question->view.pages);
    ml_memory_regions_fini(&question->view.regions);
    ml_process_threads_fini(&question->view.threads);
    free(question);
}

static struct question *take_first(struct questions *questions) {
    struct question *first = STAILQ_FIRST(questions);
    if (first != NULL) {
        STAILQ_REMOVE_HEAD(questions, next);
    }
    return first;
}

static void free_all(struct questions *questions) {
    for (struct question *one = take_first(questions); one != NULL; one = take_first(questions)) {
        free_question(one);
    }
}

static void free_reader(struct ml_view_reader *reader) {
    free_all(&reader->waiting);
    free_all(&reader->read);
    (void)pthread_mutex_destroy(&reader->mutex);
    (void)pthread_cond_destroy(&reader->wake);
    free(reader);
}

static void read_view(const struct ml_view_reader *reader, struct question *question) {
    struct ml_process_view *view = &question->view;
    view->seen = ml_clock_timestamp(reader->setup.clock);
    view->status = ml_memory_status_read(question->pid);
    ml_process_threads_init(&view->threads, question->pid);
    ml_memory_regions_init(&view->regions, question->pid);
    ml_memory_pages_init(&view->pages, question->pid, &view->regions);
}

/* The next question; NULL: the reader is to end. */
static struct question *wait_for_question(struct ml_view_reader *reader) {
    while (!reader->is_closed && STAILQ_EMPTY(&reader->waiting)) {
        (void)pthread_cond_wait(&reader->wake, &reader->mutex);
    }
    return reader->is_closed ? NULL : take_first(&reader->waiting);
}

static void *run(void *context) {
    struct ml_view_reader *reader = context;
    (void)pthread_mutex_lock(&reader->mutex);
    for (struct question *question = wait_for_question(reader); question != NULL;
         question = wait_for_question(reader)) {
        (void)pthread_mutex_unlock(&reader->mutex);
        read_view(reader, question);
        (void)pthread_mutex_lock(&reader->mutex);
        STAILQ_INSERT_TAIL(&reader->read, question, next);
        if (!reader->is_closed) { /* else there may be no loop any more */
            ev_async_send(reader->setup.loop, &reader->told);
        }
    }
    const bool is_left = reader->has_ended; /* nobody waits for it */
    reader->has_ended = true;
    (void)pthread_mutex_unlock(&reader->mutex);
    if (is_left) {
        free_reader(reader);
    }
    return NULL;
}

static void on_told(struct ev_loop *loop, ev_async *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_view_reader *reader = watcher->data;
    struct questions read = STAILQ_HEAD_INITIALIZER(read);
    (void)pthread_mutex_lock(&reader->mutex);
    STAILQ_CONCAT(&read, &reader->read);
    (void)pthread_mutex_unlock(&reader->mutex);
    for (struct question *one = take_first(&read); one != NULL; one = take_first(&read)) {
        reader->setup.on_view(reader->setup.context, one->id, one->serial, &one->view);
        free_question(one);
    }
}

/* Signals are for the loop's thread. */
static bool start_thread(struct ml_view_reader *reader) {
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&reader->thread, &attributes, run, reader);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return error == 0;
}

struct ml_view_reader *ml_view_reader_new(const struct ml_view_reader_setup *setup) {
    struct ml_view_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        return NULL;
    }
    reader->setup = *setup;
    STAILQ_INIT(&reader->waiting);
    STAILQ_INIT(&reader->read);
    (void)pthread_mutex_init(&reader->mutex, NULL);
    (void)pthread_cond_init(&reader->wake, NULL);
    ev_async_init(&reader->told, on_told);
    reader->told.data = reader;
    ev_async_start(setup->loop, &reader->told);
    if (!start_thread(reader)) {
        ev_async_stop(setup->loop, &reader->told);
        free_reader(reader);
        return NULL;
    }
    return reader;
}

uint64_t ml_view_reader_ask(struct ml_view_reader *reader, uint32_t id, pid_t pid) {
    struct question *found = NULL;
    struct question *question = calloc(1, sizeof(*question));
    (void)pthread_mutex_lock(&reader->mutex);
    STAILQ_FOREACH(found, &reader->waiting, next) {
        if (found->id == id) {
            break;
        }
    }
    if (found == NULL && question != NULL) {
        *question = (struct question){.id = id, .pid = pid, .serial = ++reader->last_serial};
        STAILQ_INSERT_TAIL(&reader->waiting, question, next);
        (void)pthread_cond_signal(&reader->wake);
        found = question;
        question = NULL;
    }
    const uint64_t serial = found != NULL ? found->serial : 0;
    (void)pthread_mutex_unlock(&reader->mutex);
    free(question);
    return serial;
}

void ml_view_reader_free(struct ml_view_reader *take_reader) {
    struct ml_view_reader *reader = take_reader;
    struct timespec until;
    if (reader == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&reader->mutex);
    reader->is_closed = true;
    (void)pthread_cond_signal(&reader->wake);
    (void)pthread_mutex_unlock(&reader->mutex);
    ev_async_stop(reader->setup.loop, &reader->told);
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_SECONDS;
    if (pthread_timedjoin_np(reader->thread, NULL, &until) == 0) {
        free_reader(reader);
        return;
    }
    (void)pthread_detach(reader->thread);
    (void)pthread_mutex_lock(&reader->mutex);
    const bool has_ended = reader->has_ended;
    reader->has_ended = true; /* to the thread: nobody waits */
    (void)pthread_mutex_unlock(&reader->mutex);
    if (has_ended) {
        free_reader(reader);
    }
}
