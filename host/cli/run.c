#include "host/cli/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/budget.h"
#include "host/cli/session.h"
#include "host/process/image.h"
#include "host/process/info.h"
#include "host/process/probe.h"

/* How long after the program's end the processes that still run are named. Within this time nobody
 * wonders why the run has not ended. */
static const double say_whom_after_s = 1.0;

struct run {
    struct ml_host_session session; /* first: callbacks get it */
    ev_timer whom_timer;
    pid_t root;
    bool root_has_ended; /* other processes of its tree may run */
    struct ml_ending root_ending;
};

static void finish(struct run *run) {
    ev_timer_stop(run->session.loop, &run->whom_timer);
    ml_session_finish(&run->session);
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
    struct ml_host_session *session = &run->session;
    struct ml_process_tree_event event;
    while (ml_process_tree_next(&session->tree, &event)) {
        const bool is_root = event.pid == run->root && !run->root_has_ended;
        if (event.stopped) {
            if (is_root) {
                stop_with_root(run, event.stop_signal);
            }
            continue;
        }
        ml_session_child_ended(session, &event);
        if (is_root) {
            run->root_has_ended = true;
            run->root_ending = event.ending;
            ev_timer_again(session->loop, &run->whom_timer);
        }
    }
    if (run->root_has_ended && session->phase == ML_SESSION_RUNS &&
        (session->options->end_with_root || ml_process_tree_left(&session->tree, NULL, 0) == 0)) {
        finish(run);
    }
}

static void on_signal(void *context, int signal, int code) {
    struct run *run = context;
    struct ml_host_session *session = &run->session;
    switch (ml_signal_decide(signal, code, session->options->dump_signal, !run->root_has_ended)) {
    case ML_SIGNAL_CHILDREN:
        take_children(run);
        break;
    case ML_SIGNAL_FORWARD:
        (void)kill(run->root, signal);
        break;
    case ML_SIGNAL_END:
        ev_timer_stop(session->loop, &run->whom_timer);
        ml_session_end_now(session);
        break;
    case ML_SIGNAL_DUMP:
        ml_session_dump(session);
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
    size_t count = ml_process_tree_left(&run->session.tree, &first, 1);
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
        &run->session.log,
        "%s has ended; waiting for %s (%d)%s. ^C ends the run now, --end-with-root does not wait",
        run->session.options->program[0],
        name,
        (int)first,
        others
    );
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
    const enum ml_image_kind kind = run->session.engine != NULL
                                        ? ml_probe_program(run->session.options->program, NULL)
                                        : ML_IMAGE_GONE;
    const struct ml_launch launch = {
        .argv = run->session.options->program,
        .environment = environment,
        .preload_path =
            run->session.engine != NULL && takes_preload(kind) ? run->session.preload_path : NULL,
        .socket_path =
            run->session.engine != NULL ? ml_engine_client_path(run->session.engine) : NULL,
        .inherited = &run->session.inherited,
    };
    struct ml_launched launched;
    if (ml_launcher_fork(&launch, &launched, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    run->root = launched.pid;
    if (run->session.engine != NULL &&
        ml_engine_set_root(run->session.engine, run->root, run->session.options->program, &error) !=
            ML_OK) {
        ml_launcher_cancel(&launched);
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    int exec_errno = 0;
    ml_launcher_release(&launched, &exec_errno);
    if (exec_errno != 0) {
        ml_say_error("%s: %s", run->session.options->program[0], strerror(exec_errno));
        return ml_launcher_exit_code(exec_errno);
    }
    if (run->session.engine != NULL) {
        ml_engine_set_root_image(
            run->session.engine, kind != ML_IMAGE_GONE ? kind : ml_image_look(run->root)
        );
    }
    return 0;
}

static int run_program(struct run *run, char *const *environment) {
    int exit_code = start_program(run, environment);
    if (exit_code != 0) {
        return exit_code;
    }
    ml_session_run(&run->session);
    exit_code = ml_ending_exit_code(&run->root_ending);
    return exit_code != 0
               ? exit_code
               : ml_budget_exit_code(
                     run->session.options, &run->session.inherited, run->session.dump_path
                 );
}

int ml_run(const struct ml_options *options, char *const *environment) {
    struct run run = {
        .session = {.options = options, .log = {.quiet = options->quiet}, .on_signal = on_signal}};
    int exit_code = ML_EXIT_FAILED;
    if (!ml_budget_is_good(options)) {
        return ML_EXIT_USAGE; /* before the program has done anything */
    }
    ev_timer_init(&run.whom_timer, on_whom_timer, 0., say_whom_after_s);
    run.whom_timer.data = &run;
    if (ml_session_open(&run.session)) {
        exit_code = run_program(&run, environment);
    }
    ml_session_close(&run.session);
    return exit_code;
}
