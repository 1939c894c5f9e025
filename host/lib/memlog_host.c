#include "host/lib/memlog_host.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "host/engine/engine.h"
#include "host/lib/internal.h"
#include "host/policy/options.h"
#include "host/process/launcher.h"
#include "host/process/paths.h"

void ml_host_answer(struct memlog_host *host, const char *text, const char *trouble) {
    (void)pthread_mutex_lock(&host->mutex);
    host->is_done = text[0] != '\0';
    (void)snprintf(host->text, sizeof(host->text), "%s", host->is_done ? text : trouble);
    host->answered = true;
    (void)pthread_cond_signal(&host->done);
    (void)pthread_mutex_unlock(&host->mutex);
}

static void on_dumped(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    ml_host_answer(context, path, trouble);
}

static void on_let_go(void *context) {
    struct memlog_host *host = context;
    ml_host_answer(host, host->last_dump, host->last_trouble);
}

/* Processes that somebody has had it attach to are left before the program goes on. */
static void on_finished(void *context, const char *path, bool complete, const char *trouble) {
    struct memlog_host *host = context;
    (void)complete;
    (void)snprintf(host->last_dump, sizeof(host->last_dump), "%s", path);
    (void)snprintf(host->last_trouble, sizeof(host->last_trouble), "%s", trouble);
    ml_engine_let_go(host->engine, on_let_go, host);
}

static void on_wake(struct ev_loop *loop, ev_async *watcher, int events) {
    (void)events;
    struct memlog_host *host = watcher->data;
    (void)pthread_mutex_lock(&host->mutex);
    enum ml_host_order order = host->order;
    host->order = ML_HOST_NOTHING;
    (void)pthread_mutex_unlock(&host->mutex);
    switch (order) {
    case ML_HOST_DUMP:
        ml_engine_dump(host->engine, MEMLOG_SERVICE_DUMP_REASON_MANUAL, on_dumped, host);
        break;
    case ML_HOST_FINISH:
        ml_engine_finish(host->engine, on_finished, host);
        break;
    case ML_HOST_PAGE:
        host->page.open(host);
        break;
    case ML_HOST_QUIT:
        ev_break(loop, EVBREAK_ALL);
        break;
    case ML_HOST_NOTHING:
        break;
    }
}

static void *run_thread(void *context) {
    struct memlog_host *host = context;
    ev_run(host->loop, 0);
    return NULL;
}

static void give_order(struct memlog_host *host, enum ml_host_order order) {
    (void)pthread_mutex_lock(&host->mutex);
    host->order = order;
    host->answered = false;
    (void)pthread_mutex_unlock(&host->mutex);
    ev_async_send(host->loop, &host->wake);
}

int ml_host_ask(
    struct memlog_host *host, enum ml_host_order order, char *out_text, size_t text_bytes
) {
    give_order(host, order);
    (void)pthread_mutex_lock(&host->mutex);
    while (!host->answered) {
        (void)pthread_cond_wait(&host->done, &host->mutex);
    }
    int result = host->is_done ? 0 : -1;
    if (text_bytes > 0) {
        (void)snprintf(out_text, text_bytes, "%s", host->text);
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

void ml_host_add_helper(void *context, pid_t pid) {
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
        .on_service = ml_host_add_helper,
        .context = host,
    };
    status = ml_engine_open(&setup, &host->engine, message);
    if (status == ML_OK) {
        status = ml_engine_set_root(host->engine, getpid(), host->argv, message);
    }
    return status;
}

static void free_host(struct memlog_host *host) {
    if (host->page.close != NULL) {
        host->page.close(host->page.page);
    }
    ml_engine_close(host->engine);
    if (host->page.free != NULL) {
        host->page.free(host->page.page);
    }
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
    return ml_host_ask(host, ML_HOST_DUMP, path, path_bytes);
}

int memlog_host_stop(struct memlog_host *take_host, char *path, size_t path_bytes) {
    struct memlog_host *host = take_host;
    if (host == NULL) {
        return 0;
    }
    int result = ml_host_ask(host, ML_HOST_FINISH, path, path_bytes);
    give_order(host, ML_HOST_QUIT);
    (void)pthread_join(host->thread, NULL);
    free_host(host);
    return result;
}
