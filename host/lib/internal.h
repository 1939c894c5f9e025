/* Private to the library: a host and its thread. Room: host.
 *
 * One rule: a program that never opens the page links nothing of it. Its file alone names the
 * page's functions, and leaves pointers to them here. */
#ifndef MEMLOG_HOST_LIB_INTERNAL_H
#define MEMLOG_HOST_LIB_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include <ev.h>

#include "host/engine/engine.h"
#include "host/lib/memlog_host.h"
#include "host/policy/options.h"
#include "host/process/launcher.h"

struct ml_page;

/* A request to the host's thread. */
enum ml_host_order { ML_HOST_NOTHING, ML_HOST_DUMP, ML_HOST_FINISH, ML_HOST_PAGE, ML_HOST_QUIT };

struct ml_host_page {
    struct ml_page *page;                    /* NULL: it is not open; the host's thread */
    void (*open)(struct memlog_host *host);  /* set before ML_HOST_PAGE, which calls it */
    void (*close)(struct ml_page *page);     /* with the engine still open */
    void (*free)(struct ml_page *take_page); /* once the engine is closed */
    struct ml_page_place place;
    char analyzer_path[PATH_MAX];
};

struct memlog_host {
    struct memlog_host_settings settings;
    struct ml_options options;
    struct ml_inherited inherited;
    char *argv[2]; /* the program's name and a NULL, as the engine wants it */
    struct ev_loop *loop;
    ev_async wake;
    struct ml_engine *engine;
    struct ml_host_page page;
    char last_dump[PATH_MAX], last_trouble[PATH_MAX]; /* the host's thread, at its end */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t done;
    enum ml_host_order order; /* mutex */
    bool answered;            /* mutex */
    bool is_done;             /* mutex */
    char text[PATH_MAX];      /* mutex; a path or a URL, or why there is none */
};

/* Send a request and wait for its answer: 0, and `out_text` has what was asked for, or -1, and it
 * says why not. */
int ml_host_ask(
    struct memlog_host *host, enum ml_host_order order, char *out_text, size_t text_bytes
);

/* Answer it, on the host's thread. `text` is "" where there is nothing, and `trouble` says why. */
void ml_host_answer(struct memlog_host *host, const char *text, const char *trouble);

/* What memlog starts for itself is no part of the program. `context` is the host. */
void ml_host_add_helper(void *context, pid_t pid);

#endif
