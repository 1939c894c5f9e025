#include "host/engine/views/reader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "base/threads/own_thread.h"
#include "host/process/clock.h"

/* At the end a reading has this long. */
enum { JOIN_SECONDS = 2, MS_PER_S = 1000, NS_PER_S = 1000000000 };

enum { STACK_BYTES = 256 << 10 };

struct question {
    STAILQ_ENTRY(question) next;
    struct ml_view_question what;
    uint64_t serial;
    struct ml_process_view view; /* once it was read */
};

STAILQ_HEAD(questions, question);

struct ml_view_reader {
    struct ml_view_reader_setup setup;
    ev_async told;
    pthread_t thread;
    uint64_t last_serial;
    struct ml_holder holder; /* the thread's */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct questions waiting; /* mutex */
    struct questions read;    /* mutex */
    uint64_t released_serial; /* mutex: up to it nobody is to be held */
    bool is_closed;           /* mutex: the loop's side is gone */
    bool has_ended;           /* mutex: the thread's is */
};

static void free_question(struct question *question) {
    ml_memory_words_fini(&question->view.words);
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
    ml_holder_close(&reader->holder);
    free_all(&reader->waiting);
    free_all(&reader->read);
    (void)pthread_mutex_destroy(&reader->mutex);
    (void)pthread_cond_destroy(&reader->wake);
    free(reader);
}

/* What this thread has taken of a processor. */
static uint64_t taken_ns(void) {
    struct timespec taken;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &taken);
    return (uint64_t)taken.tv_sec * NS_PER_S + (uint64_t)taken.tv_nsec;
}

static void read_view(const struct ml_view_reader *reader, struct question *question) {
    struct ml_process_view *view = &question->view;
    const uint64_t before_ns = taken_ns();
    view->tree_reading = question->what.tree_reading;
    view->seen = ml_clock_timestamp(reader->setup.clock);
    view->status = ml_memory_status_read(question->what.pid);
    ml_process_threads_init(&view->threads, question->what.pid);
    ml_memory_regions_init(&view->regions, question->what.pid);
    if (view->regions.count == 0) {
        view->regions_error = ml_memory_file_error(question->what.pid, "smaps");
    }
    ml_memory_pages_init(&view->pages, question->what.pid, &view->regions);
    if (reader->setup.reads_words) {
        ml_memory_words_init(
            &view->words,
            reader->setup.reads_python,
            question->what.pid,
            &view->regions,
            &view->pages
        );
    }
    view->cost_ns = taken_ns() - before_ns;
}

/* Returns whether it is held still. */
static bool read_held(struct ml_view_reader *reader, struct question *question) {
    struct ml_process_view *view = &question->view;
    const bool was_held = ml_holder_hold(&reader->holder, question->what.pid, view->why);
    read_view(reader, question);
    const bool is_held = was_held && ml_holder_holds(&reader->holder);
    if (is_held) {
        const struct memlog_service_moment now = ml_clock_timestamp(reader->setup.clock);
        view->held_ns = now.monotonic_ns - view->seen.monotonic_ns;
    } else if (was_held) {
        (void)snprintf(
            view->why,
            sizeof(view->why),
            "it was let go after %d ms, before all of it was read",
            ML_HOLD_MOST_MS
        );
    }
    return is_held;
}

/* Until its blocks are laid. The holder lets go by itself where that takes too long. */
static void wait_for_release(struct ml_view_reader *reader, uint64_t serial) {
    struct timespec until;
    int error = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ML_HOLD_MOST_MS / MS_PER_S;
    while (!reader->is_closed && reader->released_serial < serial && error == 0) {
        error = pthread_cond_timedwait(&reader->wake, &reader->mutex, &until);
    }
}

/* Read it, and hand it to the loop. With the mutex held, but for the reading. */
static void answer(struct ml_view_reader *reader, struct question *question) {
    const uint64_t serial = question->serial;
    bool is_held = false;
    (void)pthread_mutex_unlock(&reader->mutex);
    if (question->what.is_to_be_held) {
        is_held = read_held(reader, question);
    } else {
        read_view(reader, question);
    }
    (void)pthread_mutex_lock(&reader->mutex);
    STAILQ_INSERT_TAIL(&reader->read, question, next);
    if (!reader->is_closed) { /* else there may be no loop any more */
        ev_async_send(reader->setup.loop, &reader->told);
    }
    if (is_held) {
        wait_for_release(reader, serial);
        ml_holder_release(&reader->holder);
    }
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
        answer(reader, question);
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
        reader->setup.on_view(reader->setup.context, one->what.id, one->serial, &one->view);
        free_question(one);
    }
}

struct ml_view_reader *
ml_view_reader_new(const struct ml_view_reader_setup *setup, struct ml_holder take_holder) {
    struct ml_view_reader *reader = calloc(1, sizeof(*reader));
    if (reader == NULL) {
        ml_holder_close(&take_holder);
        return NULL;
    }
    reader->setup = *setup;
    reader->holder = take_holder;
    STAILQ_INIT(&reader->waiting);
    STAILQ_INIT(&reader->read);
    (void)pthread_mutex_init(&reader->mutex, NULL);
    (void)pthread_cond_init(&reader->wake, NULL);
    ev_async_init(&reader->told, on_told);
    reader->told.data = reader;
    ev_async_start(setup->loop, &reader->told);
    if (!ml_own_thread_begin(STACK_BYTES, run, reader, &reader->thread)) {
        ev_async_stop(setup->loop, &reader->told);
        free_reader(reader);
        return NULL;
    }
    return reader;
}

uint64_t ml_view_reader_ask(struct ml_view_reader *reader, const struct ml_view_question *what) {
    struct question *found = NULL;
    struct question *question = calloc(1, sizeof(*question));
    (void)pthread_mutex_lock(&reader->mutex);
    STAILQ_FOREACH(found, &reader->waiting, next) {
        if (found->what.id == what->id) {
            break;
        }
    }
    if (found == NULL && question != NULL) {
        *question = (struct question){.what = *what, .serial = ++reader->last_serial};
        STAILQ_INSERT_TAIL(&reader->waiting, question, next);
        (void)pthread_cond_signal(&reader->wake);
        found = question;
        question = NULL;
    }
    if (found != NULL) {
        found->what.is_to_be_held = found->what.is_to_be_held || what->is_to_be_held;
        if (what->tree_reading != 0) {
            found->what.tree_reading = what->tree_reading;
        }
    }
    const uint64_t serial = found != NULL ? found->serial : 0;
    (void)pthread_mutex_unlock(&reader->mutex);
    free(question);
    return serial;
}

void ml_view_reader_release(struct ml_view_reader *reader, uint64_t serial) {
    (void)pthread_mutex_lock(&reader->mutex);
    if (serial > reader->released_serial) {
        reader->released_serial = serial;
        (void)pthread_cond_signal(&reader->wake);
    }
    (void)pthread_mutex_unlock(&reader->mutex);
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
