/* `memlog page DIR`: the page over the dumps of an ended run. Room: host. Context: its own
 * process. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include <dirent.h>
#include <ev.h>

#include "host/cli/commands.h"
#include "host/cli/run.h"
#include "host/page/page.h"
#include "host/policy/options.h"
#include "host/process/log.h"
#include "host/process/paths.h"
#include "host/process/signals.h"

struct show {
    struct ev_loop *loop;
    struct ml_page *page;
};

static void on_signal(void *context, int signal, int code) {
    struct show *show = context;
    (void)code;
    switch (signal) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
        ev_break(show->loop, EVBREAK_ALL);
        break;
    default:
        break;
    }
}

/* Serve until SIGINT, SIGTERM or SIGHUP. Returns the exit code. */
static int serve(struct show *show, const struct ml_page_setup *setup) {
    struct ml_error_message error = {.text = ""};
    struct ml_signals signals;
    const struct ml_log log = {.quiet = false};
    if (ml_signals_open(&signals, show->loop, on_signal, show, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    const bool is_open = ml_page_open(setup, &show->page, &error) == ML_OK;
    if (is_open) {
        ml_say(&log, "page: %s", ml_page_url(show->page));
        ml_say(&log, "^C ends it");
        ev_run(show->loop, 0);
    } else {
        ml_say_error("%s", error.text);
    }
    ml_page_close(show->page);
    ml_page_free(show->page);
    ml_signals_close(&signals);
    return is_open ? 0 : ML_EXIT_FAILED;
}

static bool has_dumps(const char *path) {
    DIR *folder = opendir(path);
    bool found = false;
    if (folder == NULL) {
        ml_say_error("%s: %s; the -o folder of a memlog run is wanted", path, strerror(errno));
        return false;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL && !found; entry = readdir(folder)) {
        found = strstr(entry->d_name, ".pftrace") != NULL && entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    if (!found) {
        ml_say_error("%s: there are no dumps in it; it is the -o folder of a memlog run", path);
    }
    return found;
}

struct arguments {
    struct ml_page_place page;
    bool page_remote;
    const char *folder;
};

static bool read_page(void *to, const char *value, struct ml_error_message *why) {
    return ml_page_place_parse(value, &((struct arguments *)to)->page, why) == ML_OK;
}

static const struct ml_option options[] = {
    ML_ROWS_PAGE(struct arguments, read_page, page_remote),
};

const struct ml_option_table ml_page_table = {
    .program = "memlog",
    .name = "page",
    .summary = "the live page over an ended run",
    .usage = "[OPTIONS] DIR",
    .about = "Serves the page over the dumps of an ended run, which lie in DIR, and prints its "
             "address with the token: processes, flame graphs, functions, what changed between two "
             "dumps. ^C ends it.",
    ML_OPTIONS(options),
    .operands = ML_OPERANDS_FILES,
    .operands_offset = offsetof(struct arguments, folder),
    .operands_least = 1,
    .operands_most = 1,
    .operands_missing = "which folder? memlog run names it, -o",
    .example = "memlog page memlog.sqlite3.1234",
};

static int show_folder(const struct arguments *arguments) {
    struct ml_error_message error = {.text = ""};
    char analyzer_path[PATH_MAX];
    struct ml_inherited inherited;
    struct show show = {.page = NULL};
    if (ml_paths_find(ML_ANALYZER_FILE, analyzer_path, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    ml_inherited_take(&inherited);
    show.loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (show.loop == NULL) {
        ml_say_error("cannot make an event loop: %s", strerror(errno));
        return ML_EXIT_FAILED;
    }
    const struct ml_page_setup setup = {
        .loop = show.loop,
        .folder = arguments->folder,
        .place = &arguments->page,
        .analyzer_path = analyzer_path,
        .inherited = &inherited,
    };
    const int exit_code = serve(&show, &setup);
    ev_loop_destroy(show.loop);
    return exit_code;
}

int ml_command_page(char *const *words) {
    struct arguments arguments = {.page = ml_page_place_default()};
    struct ml_error_message error = {.text = ""};
    int exit_code = 0;
    if (!ml_commands_read(&ml_page_table, words, &arguments, NULL, &exit_code)) {
        return exit_code;
    }
    if (!ml_page_place_allowed(&arguments.page, arguments.page_remote, &error)) {
        return ml_commands_wrong(&ml_page_table, error.text);
    }
    return has_dumps(arguments.folder) ? show_folder(&arguments) : 1;
}
