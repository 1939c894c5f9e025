#include "host/cli/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <ev.h>

#include "host/cli/summary.h"
#include "host/engine/engine.h"
#include "host/page/page.h"
#include "host/process/image.h"
#include "host/process/info.h"
#include "host/process/launcher.h"
#include "host/process/log.h"
#include "host/process/paths.h"
#include "host/process/probe.h"
#include "host/process/signals.h"
#include "host/process/tree.h"

/* How long after the program's end the processes that still run are named. Within this time nobody
 * wonders why the run has not ended. */
static const double say_whom_after_s = 1.0;

enum phase {
    PHASE_ROOT,      /* the program runs */
    PHASE_OTHERS,    /* the program has ended, other processes of its tree run */
    PHASE_FINISHING, /* the final dump is being taken */
    PHASE_DONE
};

struct run {
    const struct ml_options *options;
    struct ml_log log;
    struct ml_inherited inherited;
    struct ev_loop *loop;
    struct ml_signals signals;
    struct ml_process_tree tree;
    ev_timer whom_timer;
    struct ml_engine *engine; /* NULL: --memlog=none */
    struct ml_page *page;     /* NULL: --no-page, or it could not be opened */
    char analyzer_path[PATH_MAX];
    char library_path[PATH_MAX];
    const char *preload_path;
    pid_t root;
    enum phase phase;
    struct ml_ending root_ending;
    unsigned end_requests; /* signals that ask the run to end, after the program has ended */
    char dump_path[PATH_MAX];
};

static void on_finished(void *context, const char *path, bool complete, const char *trouble) {
    struct run *run = context;
    if (run->phase != PHASE_FINISHING) {
        return; /* a second request to end has given up the dump */
    }
    run->phase = PHASE_DONE;
    (void)snprintf(run->dump_path, sizeof(run->dump_path), "%s", path);
    if (path[0] == '\0') {
        ml_say(&run->log, "no dump was taken: %s", trouble);
    } else if (!complete) {
        ml_say(
            &run->log, "the profile is not complete%s%s", trouble[0] != '\0' ? ": " : "", trouble
        );
    }
    ev_break(run->loop, EVBREAK_ALL);
}

/* Take the final dump, then end. */
static void finish(struct run *run) {
    if (run->phase == PHASE_FINISHING || run->phase == PHASE_DONE) {
        return;
    }
    run->phase = PHASE_FINISHING;
    ev_timer_stop(run->loop, &run->whom_timer);
    if (run->engine != NULL) {
        ml_engine_finish(run->engine, on_finished, run);
    } else {
        run->phase = PHASE_DONE;
        ev_break(run->loop, EVBREAK_ALL);
    }
}

/* The first request ends the run with its dump, the second ends it without. The signal that ended
 * the program does not count, so that a person who presses ^C once more does not lose the dump. */
static void end_now(struct run *run) {
    run->end_requests++;
    if (run->phase != PHASE_FINISHING) {
        finish(run);
    } else if (run->end_requests < 2) {
        ml_say(&run->log, "the final dump is being written; once more ends without it");
    } else {
        ml_say(&run->log, "ended without a final dump");
        run->phase = PHASE_DONE;
        ev_break(run->loop, EVBREAK_ALL);
    }
}

/* A stop signal of the terminal has stopped the root. Stop this process as well, so that the shell
 * sees a stopped job. When the shell continues the job, continue the root. */
static void stop_with_root(struct run *run, int stop_signal) {
    bool by_terminal = stop_signal == SIGTSTP || stop_signal == SIGTTIN || stop_signal == SIGTTOU;
    if (!by_terminal || getpgid(run->root) != getpgrp()) {
        return;
    }
    (void)raise(SIGSTOP);
    (void)kill(run->root, SIGCONT);
}

static void take_children(struct run *run) {
    struct ml_process_tree_event event;
    while (ml_process_tree_next(&run->tree, &event)) {
        if (event.stopped) {
            if (event.pid == run->root && run->phase == PHASE_ROOT) {
                stop_with_root(run, event.stop_signal);
            }
            continue;
        }
        if (run->engine != NULL) {
            ml_page_child_ended(run->page, event.pid, &event.ending);
            ml_engine_child_ended(run->engine, event.pid, &event.ending);
        }
        if (event.pid == run->root && run->phase == PHASE_ROOT) {
            run->phase = PHASE_OTHERS;
            run->root_ending = event.ending;
            ev_timer_again(run->loop, &run->whom_timer);
        }
    }
    if (run->phase == PHASE_OTHERS &&
        (run->options->end_with_root || ml_process_tree_left(&run->tree, NULL, 0) == 0)) {
        finish(run);
    }
}

static void on_dump(void *context, const char *path, bool complete, const char *trouble) {
    struct run *run = context;
    if (path[0] == '\0') {
        ml_say(&run->log, "no dump was taken: %s", trouble);
    } else {
        ml_say(
            &run->log, "%s%s%s", path, complete ? "" : ", not complete: ", complete ? "" : trouble
        );
    }
}

static void on_signal(void *context, int signal, int code) {
    struct run *run = context;
    bool root_runs = run->phase == PHASE_ROOT;
    switch (ml_signal_decide(signal, code, run->options->dump_signal, root_runs)) {
    case ML_SIGNAL_CHILDREN:
        take_children(run);
        break;
    case ML_SIGNAL_FORWARD:
        (void)kill(run->root, signal);
        break;
    case ML_SIGNAL_END:
        end_now(run);
        break;
    case ML_SIGNAL_DUMP:
        if (run->engine != NULL) {
            ml_engine_dump(run->engine, MEMLOG_SERVICE_DUMP_REASON_SIGNAL, on_dump, run);
        }
        break;
    case ML_SIGNAL_IGNORE:
        break;
    }
}

static void on_whom_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct run *run = watcher->data;
    ev_timer_stop(loop, watcher);
    pid_t first = 0;
    size_t count = ml_process_tree_left(&run->tree, &first, 1);
    if (count == 0) {
        return;
    }
    char name[ML_PROCESS_NAME_BYTES] = "";
    ml_process_name(first, name);
    char others[64] = "";
    if (count > 1) {
        (void)snprintf(others, sizeof(others), " and %zu more", count - 1);
    }
    ml_say(
        &run->log,
        "%s has ended; waiting for %s (%d)%s. ^C ends the run now, --end-with-root does not wait",
        run->options->program[0],
        name,
        (int)first,
        others
    );
}

static void on_notice(void *context, const char *text) {
    struct run *run = context;
    ml_say(&run->log, "%s", text);
}

static void on_helper(void *context, pid_t pid) {
    struct run *run = context;
    ml_process_tree_add_helper(&run->tree, pid);
    if (run->engine != NULL) { /* during its opening the engine registers its service itself */
        ml_engine_add_helper(run->engine, pid);
    }
}

/* It is an error if a page with an address from the command line cannot be opened. Without the
 * default page the run goes on. */
static enum ml_status open_page(struct run *run, struct ml_error_message *error) {
    struct ml_error_message why = {.text = ""};
    const struct ml_page_setup setup = {
        .loop = run->loop,
        .engine = run->engine,
        .place = &run->options->page,
        .analyzer_path = run->analyzer_path,
        .inherited = &run->inherited,
        .on_helper = on_helper,
        .context = run,
    };
    if (run->options->page.kind == ML_PAGE_NONE) {
        return ML_OK;
    }
    enum ml_status status = ml_paths_find(ML_ANALYZER_FILE, run->analyzer_path, &why);
    if (status == ML_OK) {
        status = ml_page_open(&setup, &run->page, &why);
    }
    if (status == ML_OK) {
        ml_say(&run->log, "page: %s", ml_page_url(run->page));
    } else if (run->options->page.asked) {
        ml_error_set(error, "%s", why.text);
        return status;
    } else {
        ml_say(&run->log, "there is no page: %s", why.text);
    }
    return ML_OK;
}

/* Whether this process will hold S3 keys or a token. */
static bool has_secrets(const struct ml_options *options) {
    return options->upload.url != NULL &&
           (options->upload.target.kind == ML_UPLOAD_S3 || options->upload.token_file != NULL);
}

static enum ml_status open_engine(struct run *run, struct ml_error_message *error) {
    char service_path[PATH_MAX];
    enum ml_status status = ml_paths_find(ML_PRELOAD_FILE, run->library_path, error);
    if (status == ML_OK) {
        status = ml_paths_find(ML_SERVICE_FILE, service_path, error);
    }
    if (status != ML_OK) {
        return status;
    }
    const struct ml_engine_setup setup = {
        .loop = run->loop,
        .options = run->options,
        .inherited = &run->inherited,
        .service_path = service_path,
        .on_service = on_helper,
        .on_notice = on_notice,
        .context = run,
    };
    if (has_secrets(run->options)) {
        /* Keep the secrets out of core dumps of this process. An exec resets this in its child. */
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    status = ml_engine_open(&setup, &run->engine, error);
    if (status != ML_OK) {
        return status;
    }
    /* With strict the program must not start before the service is in its sandbox. */
    while (run->options->sandbox == ML_SANDBOX_STRICT &&
           ml_engine_service_is_starting(ml_engine_service_state(run->engine))) {
        ev_run(run->loop, EVRUN_ONCE);
    }
    if (run->options->sandbox == ML_SANDBOX_STRICT &&
        ml_engine_service_state(run->engine) == ML_ENGINE_ALONE) {
        ml_error_set(
            error, "--sandbox=strict: there is no service in a whole sandbox, nothing was run"
        );
        return ML_ENV_REFUSED;
    }
    status = ml_engine_preload_path(run->engine, run->library_path, &run->preload_path, error);
    return status == ML_OK ? open_page(run, error) : status;
}

/* The loader of another libc crashes when it preloads our library. A 32-bit loader writes an error
 * to the program's stderr. */
static bool takes_preload(enum ml_image_kind kind) {
    return kind != ML_IMAGE_OTHER_LOADER && kind != ML_IMAGE_32_BIT;
}

/* Fork the program, and release it to its exec once every step that can fail has succeeded. Returns
 * 0, or the exit code. */
static int start_program(struct run *run, char *const *environment) {
    struct ml_error_message error = {.text = ""};
    const enum ml_image_kind kind =
        run->engine != NULL ? ml_probe_program(run->options->program, NULL) : ML_IMAGE_GONE;
    const struct ml_launch launch = {
        .argv = run->options->program,
        .environment = environment,
        .preload_path = run->engine != NULL && takes_preload(kind) ? run->preload_path : NULL,
        .socket_path = run->engine != NULL ? ml_engine_client_path(run->engine) : NULL,
        .inherited = &run->inherited,
    };
    struct ml_launched launched;
    if (ml_launcher_fork(&launch, &launched, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    run->root = launched.pid;
    if (run->engine != NULL &&
        ml_engine_set_root(run->engine, run->root, run->options->program, &error) != ML_OK) {
        ml_launcher_cancel(&launched);
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    int exec_errno = 0;
    ml_launcher_release(&launched, &exec_errno);
    if (exec_errno != 0) {
        ml_say_error("%s: %s", run->options->program[0], strerror(exec_errno));
        return ml_launcher_exit_code(exec_errno);
    }
    if (run->engine != NULL) {
        ml_engine_set_root_image(
            run->engine, kind != ML_IMAGE_GONE ? kind : ml_image_look(run->root)
        );
    }
    return 0;
}

static int run_program(struct run *run, char *const *environment) {
    int exit_code = start_program(run, environment);
    if (exit_code != 0) {
        return exit_code;
    }
    ev_run(run->loop, 0);
    if (run->dump_path[0] != '\0') {
        ml_summary(&run->log, &run->inherited, run->dump_path);
    }
    return ml_ending_exit_code(&run->root_ending);
}

int ml_run(const struct ml_options *options, char *const *environment) {
    struct run run = {.options = options, .log = {.quiet = options->quiet}};
    struct ml_error_message error = {.text = ""};
    int exit_code = ML_EXIT_FAILED;
    ml_inherited_take(&run.inherited);
    run.loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (run.loop == NULL) {
        ml_say_error("cannot make an event loop: %s", strerror(errno));
        return ML_EXIT_FAILED;
    }
    run.signals.fd = -1;
    ev_timer_init(&run.whom_timer, on_whom_timer, 0., say_whom_after_s);
    run.whom_timer.data = &run;
    if (ml_process_tree_init(&run.tree, &error) != ML_OK ||
        ml_signals_open(&run.signals, run.loop, on_signal, &run, &error) != ML_OK ||
        (options->mode != ML_MODE_NONE && open_engine(&run, &error) != ML_OK)) {
        ml_say_error("%s", error.text);
    } else {
        exit_code = run_program(&run, environment);
    }
    ml_page_close(run.page);
    ml_engine_close(run.engine);
    ml_page_free(run.page);
    ml_signals_close(&run.signals);
    ev_loop_destroy(run.loop);
    return exit_code;
}
