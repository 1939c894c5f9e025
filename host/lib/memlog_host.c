#include "host/lib/memlog_host.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "host/engine/engine.h"
#include "host/policy/options.h"
#include "host/process/launcher.h"
#include "host/process/paths.h"

/* A request to the host's thread. */
enum order { ORDER_NONE, ORDER_DUMP, ORDER_FINISH, ORDER_QUIT };

struct memlog_host {
    struct memlog_host_settings settings;
    struct ml_options options;
    struct ml_inherited inherited;
    char *argv[2]; /* the program's name and a NULL, as the engine wants it */
    struct ev_loop *loop;
    ev_async wake;
    struct ml_engine *engine;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t done;
    enum order order;    /* mutex */
    bool answered;       /* mutex */
    bool written;        /* mutex */
    char path[PATH_MAX]; /* mutex; or why there is none */
};

/* `path` and `trouble` as of a dump; the caller of the request waits for the answer. */
static void keep_answer(struct memlog_host *host, const char *path, const char *trouble) {
    (void)pthread_mutex_lock(&host->mutex);
    host->written = path[0] != '\0';
    (void)snprintf(host->path, sizeof(host->path), "%s", host->written ? path : trouble);
    (void)pthread_mutex_unlock(&host->mutex);
}

static void on_answered(void *context) {
    struct memlog_host *host = context;
    (void)pthread_mutex_lock(&host->mutex);
    host->answered = true;
    (void)pthread_cond_signal(&host->done);
    (void)pthread_mutex_unlock(&host->mutex);
}

static void on_dumped(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    keep_answer(context, path, trouble);
    on_answered(context);
}

/* Processes that somebody has had it attach to are left before the program goes on. */
static void on_finished(void *context, const char *path, bool complete, const char *trouble) {
    struct memlog_host *host = context;
    (void)complete;
    keep_answer(host, path, trouble);
    ml_engine_let_go(host->engine, on_answered, host);
}

static void on_wake(struct ev_loop *loop, ev_async *watcher, int events) {
    (void)events;
    struct memlog_host *host = watcher->data;
    (void)pthread_mutex_lock(&host->mutex);
    enum order order = host->order;
    host->order = ORDER_NONE;
    (void)pthread_mutex_unlock(&host->mutex);
    switch (order) {
    case ORDER_DUMP:
        ml_engine_dump(host->engine, MEMLOG_SERVICE_DUMP_REASON_MANUAL, on_dumped, host);
        break;
    case ORDER_FINISH:
        ml_engine_finish(host->engine, on_finished, host);
        break;
    case ORDER_QUIT:
        ev_break(loop, EVBREAK_ALL);
        break;
    case ORDER_NONE:
        break;
    }
}

static void *run_thread(void *context) {
    struct memlog_host *host = context;
    ev_run(host->loop, 0);
    return NULL;
}

static void give_order(struct memlog_host *host, enum order order) {
    (void)pthread_mutex_lock(&host->mutex);
    host->order = order;
    host->answered = false;
    (void)pthread_mutex_unlock(&host->mutex);
    ev_async_send(host->loop, &host->wake);
}

/* Send a request and wait for its answer. */
static int ask(struct memlog_host *host, enum order order, char *path, size_t path_bytes) {
    give_order(host, order);
    (void)pthread_mutex_lock(&host->mutex);
    while (!host->answered) {
        (void)pthread_cond_wait(&host->done, &host->mutex);
    }
    int result = host->written ? 0 : -1;
    if (path_bytes > 0) {
        (void)snprintf(path, path_bytes, "%s", host->path);
    }
    (void)pthread_mutex_unlock(&host->mutex);
    return result;
}

static void on_notice(void *context, const char *text) {
    struct memlog_host *host = context;
    if (host->settings.on_notice != NULL) {
        host->settings.on_notice(host->settings.context, text);
    }
}

/* What memlog starts for itself is no part of the program. */
static void on_helper(void *context, pid_t pid) {
    struct memlog_host *host = context;
    if (host->engine != NULL) {
        ml_engine_add_helper(host->engine, pid);
    }
}

/* The options, as if behind `memlog run`, with the program's name at their end. */
static enum ml_status parse_options(struct memlog_host *host, struct ml_error_message *message) {
    enum ml_status status = ml_options_init(&host->options);
    size_t count = 0;
    while (status == ML_OK && host->settings.options != NULL &&
           host->settings.options[count] != NULL) {
        count++;
    }
    char **words = status == ML_OK ? calloc(count + 2, sizeof(char *)) : NULL;
    if (words == NULL) {
        return ML_ENV_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        words[i] = host->settings.options[i];
    }
    words[count] = host->argv[0];
    status = ml_options_parse(&host->options, words, message);
    free(words);
    host->options.program = host->argv;
    if (status == ML_OK && (host->options.help || host->options.mode == ML_MODE_NONE)) {
        ml_error_set(message, "%s makes no host", host->options.help ? "--help" : "--memlog=none");
        status = ML_PEER_RANGE;
    }
    return status;
}

static enum ml_status open_engine(struct memlog_host *host, struct ml_error_message *message) {
    char service_path[PATH_MAX];
    enum ml_status status = ML_OK;
    if (host->settings.service_path == NULL) {
        status = ml_paths_find(ML_SERVICE_FILE, service_path, message);
    } else {
        ml_paths_beside(host->settings.service_path);
    }
    if (status != ML_OK) {
        return status;
    }
    const struct ml_engine_setup setup = {
        .loop = host->loop,
        .options = &host->options,
        .inherited = &host->inherited,
        .service_path =
            host->settings.service_path != NULL ? host->settings.service_path : service_path,
        .on_notice = on_notice,
        .on_service = on_helper,
        .context = host,
    };
    status = ml_engine_open(&setup, &host->engine, message);
    if (status == ML_OK) {
        status = ml_engine_set_root(host->engine, getpid(), host->argv, message);
    }
    return status;
}

static void free_host(struct memlog_host *host) {
    ml_engine_close(host->engine);
    if (host->loop != NULL) {
        ev_loop_destroy(host->loop);
    }
    ml_options_fini(&host->options);
    (void)pthread_mutex_destroy(&host->mutex);
    (void)pthread_cond_destroy(&host->done);
    free(host->argv[0]);
    free(host);
}

/* The thread inherits its creator's mask: every signal is the program's own business. */
static bool start_thread(struct memlog_host *host) {
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&host->thread, NULL, run_thread, host);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error == 0;
}

struct memlog_host *
memlog_host_start(const struct memlog_host_settings *settings, char *error, size_t error_bytes) {
    struct ml_error_message message = {.text = ""};
    struct memlog_host *host = calloc(1, sizeof(*host));
    if (host == NULL) {
        (void)snprintf(error, error_bytes, "%s", ml_status_text(ML_ENV_MEMORY));
        return NULL;
    }
    host->settings = *settings;
    host->argv[0] = strdup(settings->program != NULL ? settings->program : "program");
    (void)pthread_mutex_init(&host->mutex, NULL);
    (void)pthread_cond_init(&host->done, NULL);
    ml_inherited_read(&host->inherited);
    enum ml_status status = host->argv[0] != NULL ? parse_options(host, &message) : ML_ENV_MEMORY;
    if (status == ML_OK) {
        host->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
        status = host->loop != NULL ? open_engine(host, &message) : ML_ENV_SYSTEM;
    }
    if (status == ML_OK) {
        ev_async_init(&host->wake, on_wake);
        host->wake.data = host;
        ev_async_start(host->loop, &host->wake);
        status = start_thread(host) ? ML_OK : ML_ENV_SYSTEM;
    }
    if (status != ML_OK) {
        (void)snprintf(
            error,
            error_bytes,
            "%s",
            message.text[0] != '\0' ? message.text : ml_status_text(status)
        );
        free_host(host);
        return NULL;
    }
    return host;
}

const char *memlog_host_socket(const struct memlog_host *host) {
    return ml_engine_client_path(host->engine);
}

int memlog_host_dump(struct memlog_host *host, char *path, size_t path_bytes) {
    return ask(host, ORDER_DUMP, path, path_bytes);
}

int memlog_host_stop(struct memlog_host *take_host, char *path, size_t path_bytes) {
    struct memlog_host *host = take_host;
    if (host == NULL) {
        return 0;
    }
    int result = ask(host, ORDER_FINISH, path, path_bytes);
    give_order(host, ORDER_QUIT);
    (void)pthread_join(host->thread, NULL);
    free_host(host);
    return result;
}
