/* The program `memlog-collect`: memlog starts it for `memlog collect`. Room: host. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ev.h>

#include "host/collect/clickhouse/opening.h"
#include "host/collect/storing/collector.h"
#include "host/collect/server/folders.h"
#include "host/collect/options.h"
#include "host/collect/server/receiver.h"
#include "host/collect/server/symbolize.h"
#include "host/http/listen.h"
#include "host/http/tls.h"
#include "host/kernel/features.h"
#include "host/process/log.h"
#include "host/process/paths.h"

enum {
    EXIT_FAILED = 1,
    EXIT_WRONG = 2,
    PEM_BYTES = 64 << 10,
    WAITING_MAX = 20000, /* at a few hundred a second a minute's work */
    SUFFIX_BYTES = 16
};

/* Of the disk of the bodies, for the ledger, the store and everybody else. */
static const uint64_t free_min_bytes = (uint64_t)64 << 20;

struct parts {
    struct ml_collect_options options;
    struct ml_log log;
    struct ev_loop *loop;
    char tokens_path[PATH_MAX];
    char spool_path[PATH_MAX];
    char analyzer_path[PATH_MAX];
    char pems[3][PEM_BYTES];
    struct ml_http_tls tls;
    struct ml_tokens tokens;
    struct ml_ledger *ledger;
    struct ml_store *store;
    struct ml_collector *collector;
    struct ml_remover *remover;
    struct ml_receiver *receiver;
    struct ml_folders *folders;
    ev_signal signals[2];
};

static void on_trouble(void *context, const char *text) {
    (void)context;
    ml_say_error("%s", text);
}

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events) {
    (void)watcher;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

/* The store's path and a suffix, where nothing else was said; ClickHouse has no path here, so it is
 * the spool's. */
static void
path_of(const struct parts *parts, const char *said, const char *suffix, char out_path[PATH_MAX]) {
    const char *own = parts->options.store != NULL ? parts->options.store : parts->options.spool;
    (void)snprintf(
        out_path,
        PATH_MAX,
        "%.*s%s",
        PATH_MAX - SUFFIX_BYTES,
        said != NULL ? said : own,
        said != NULL ? "" : suffix
    );
}

/* ---- certificates */

static bool pem_read(const char *path, char out_text[PEM_BYTES], struct ml_error_message *error) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, out_text, PEM_BYTES - 1) : -1;
    if (count < 0) {
        ml_error_set(error, "%s: %s", path, strerror(errno));
    } else {
        out_text[count] = '\0';
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return count >= 0;
}

static bool tls_read(struct parts *parts, struct ml_error_message *error) {
    const struct ml_collect_options *options = &parts->options;
    if (options->tls_cert == NULL) {
        return true;
    }
    if (!pem_read(options->tls_cert, parts->pems[0], error) ||
        !pem_read(options->tls_key, parts->pems[1], error) ||
        (options->client_ca != NULL && !pem_read(options->client_ca, parts->pems[2], error))) {
        return false;
    }
    parts->tls = ml_http_tls_of(
        parts->pems[0], parts->pems[1], options->client_ca != NULL ? parts->pems[2] : NULL
    );
    return true;
}

/* ---- open and close */

static bool open_store(struct parts *parts, struct ml_error_message *error) {
    struct ml_collect_options *options = &parts->options;
    char batches_path[PATH_MAX];
    path_of(parts, options->tokens, ".tokens", parts->tokens_path);
    path_of(parts, options->spool, ".spool", parts->spool_path);
    (void)snprintf(
        batches_path,
        sizeof(batches_path),
        "%.*s/batches.db",
        PATH_MAX - SUFFIX_BYTES,
        parts->spool_path
    );
    const struct ml_click_place place = {
        .urls = options->clickhouse,
        .login_path = options->store_auth,
        .batches_path = batches_path,
    };
    if (ml_paths_find(ML_ANALYZER_FILE, parts->analyzer_path, error) != ML_OK ||
        ml_ledger_open(parts->spool_path, &parts->ledger, error) != ML_OK) {
        return false;
    }
    const enum ml_status status = options->store != NULL
                                      ? ml_store_open(options->store, &parts->store, error)
                                      : ml_click_store_open(&place, &parts->store, error);
    if (status != ML_OK) {
        return false;
    }
    const struct ml_collector_setup setup = {
        .loop = parts->loop,
        .ledger = parts->ledger,
        .store = parts->store,
        .analyzer_path = parts->analyzer_path,
        .retention_s = options->rebuilds ? 0 : options->retention_s,
        .ends_when_idle = options->rebuilds,
        .on_trouble = on_trouble,
    };
    if (options->rebuilds && ml_ledger_forget_store(parts->ledger) != ML_OK) {
        ml_error_set(error, "%s: its ledger cannot be written", parts->spool_path);
        return false;
    }
    parts->collector = ml_collector_new(&setup);
    return parts->collector != NULL;
}

static bool open_remover(struct parts *parts, struct ml_error_message *error) {
    const struct ml_remover_setup setup = {
        .loop = parts->loop,
        .ledger = parts->ledger,
        .collector = parts->collector,
        .on_report_end = ml_receiver_report_removed,
        .on_trouble = on_trouble,
    };
    parts->remover = ml_remover_new(&setup, error);
    return parts->remover != NULL;
}

static bool open_folders(struct parts *parts, struct ml_error_message *error) {
    const struct ml_folders_setup setup = {
        .loop = parts->loop,
        .folders = parts->options.folders,
        .folders_count = parts->options.folders_count,
        .ledger = parts->ledger,
        .collector = parts->collector,
        .body_max_bytes = parts->options.body_max_bytes,
        .waiting_max = WAITING_MAX,
        .free_min_bytes = free_min_bytes,
        .on_trouble = on_trouble,
    };
    return ml_folders_open(&setup, &parts->folders, error) == ML_OK;
}

static bool open_receiver(struct parts *parts, struct ml_error_message *error) {
    struct ml_receiver_setup setup = {
        .loop = parts->loop,
        .tls = parts->options.tls_cert != NULL ? &parts->tls : NULL,
        .tokens = &parts->tokens,
        .ledger = parts->ledger,
        .store = parts->store,
        .collector = parts->collector,
        .question_limit_s = parts->options.question_limit_s,
        .body_max_bytes = parts->options.body_max_bytes,
        .waiting_max = WAITING_MAX,
        .team_rate = parts->options.team_rate,
        .team_bytes = parts->options.team_bytes,
        .free_min_bytes = free_min_bytes,
    };
    if (parts->options.tokens == NULL && ml_tokens_make(parts->tokens_path, error) != ML_OK) {
        return false;
    }
    struct ml_error_message why = {.text = ""};
    if (ml_tokens_read(parts->tokens_path, &parts->tokens, &why) != ML_OK) {
        ml_error_set(error, "%s: %s", parts->tokens_path, why.text);
        return false;
    }
    if (!open_remover(parts, error) || !tls_read(parts, error) ||
        ml_page_listen(&parts->options.place, &setup.take_listen_fd, error) != ML_OK) {
        return false;
    }
    setup.remover = parts->remover;
    return ml_receiver_open(&setup, &parts->receiver, error) == ML_OK && open_folders(parts, error);
}

static void close_parts(struct parts *parts) {
    ml_folders_close(parts->folders);
    ml_receiver_close(parts->receiver);
    ml_remover_free(parts->remover);
    ml_collector_free(parts->collector);
    ml_store_close(parts->store);
    ml_ledger_close(parts->ledger);
    ml_tokens_fini(&parts->tokens);
    explicit_bzero(parts->pems, sizeof(parts->pems));
    if (parts->receiver != NULL) {
        ml_page_unlisten(&parts->options.place);
    }
}

static void say_where(const struct parts *parts) {
    const struct ml_page_place *place = &parts->options.place;
    const bool is_six = strchr(place->address, ':') != NULL;
    const char *store =
        parts->options.store != NULL ? parts->options.store : parts->options.clickhouse;
    if (place->kind == ML_PAGE_UNIX) {
        ml_say(&parts->log, "collecting into %s at %s", store, place->path);
        return;
    }
    ml_say(
        &parts->log,
        "collecting into %s at %s://%s%s%s:%u; its tokens are in %s",
        store,
        parts->options.tls_cert != NULL ? "https" : "http",
        is_six ? "[" : "",
        place->address,
        is_six ? "]" : "",
        (unsigned)place->port,
        parts->tokens_path
    );
    ml_say(
        &parts->log,
        "its page: %s://%s%s%s:%u/ asks for a read token",
        parts->options.tls_cert != NULL ? "https" : "http",
        is_six ? "[" : "",
        place->address,
        is_six ? "]" : "",
        (unsigned)place->port
    );
}

/* Each report is read behind walls; what of them this system lacks. */
static void say_walls(const struct parts *parts) {
    size_t count = 0;
    const struct ml_kernel_feature *features = ml_kernel_features(&count);
    for (size_t i = 0; i < count; i++) {
        if (features[i].is_wall && !features[i].is_there()) {
            ml_say(
                &parts->log,
                "reports are read without the wall of %s: this kernel lacks it (Linux %s), or a "
                "filter forbids it",
                features[i].name,
                features[i].since
            );
        }
    }
}

static int work(struct parts *parts) {
    static const int numbers[] = {SIGINT, SIGTERM};
    struct ml_error_message error = {.text = ""};
    (void)signal(SIGPIPE, SIG_IGN);
    (void)umask(S_IRWXG | S_IRWXO);
    parts->loop = ev_default_loop(0);
    if (parts->loop == NULL || !open_store(parts, &error) ||
        (!parts->options.rebuilds && !open_receiver(parts, &error))) {
        ml_say_error("%s", error.text[0] != '\0' ? error.text : "memory ran out");
        close_parts(parts);
        return EXIT_FAILED;
    }
    for (size_t i = 0; i < 2; i++) {
        ev_signal_init(&parts->signals[i], on_signal, numbers[i]);
        ev_signal_start(parts->loop, &parts->signals[i]);
    }
    if (parts->receiver != NULL) {
        say_where(parts);
        say_walls(parts);
    }
    ev_run(parts->loop, 0);
    close_parts(parts);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
    static struct parts parts;
    struct ml_error_message error = {.text = ""};
    static struct ml_option_default defaults[ML_OPTION_DEFAULTS_MAX];
    size_t defaults_count = 0;
    char **words = ml_option_defaults_of(argv + (argc > 0 ? 1 : 0), defaults, &defaults_count);
    words += words[0] != NULL; /* "collect" */
    if (words[0] != NULL && strcmp(words[0], "symbolize") == 0) {
        return ml_symbolize_run(words + 1);
    }
    ml_option_defaults(defaults, defaults_count);
    parts.options = ml_collect_options_default();
    switch (ml_option_table_read(&ml_collect_table, words, &parts.options, NULL, &error)) {
    case ML_OPTIONS_HELP:
        ml_option_table_help(&ml_collect_table, stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
    case ML_OPTIONS_WRONG:
        ml_say_error("%s", error.text);
        (void)fputs("Try 'memlog collect --help'.\n", stderr);
        return EXIT_WRONG;
    case ML_OPTIONS_READ:
        break;
    }
    const char *wrong = ml_collect_options_wrong(&parts.options);
    if (wrong != NULL) {
        ml_say_error("%s", wrong);
        return EXIT_WRONG;
    }
    parts.log.quiet = parts.options.quiet;
    return work(&parts);
}
