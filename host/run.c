#include "host/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "host/launcher.h"
#include "host/process_info.h"
#include "host/signals.h"
#include "host/tree.h"
#include "host/voice.h"

/* So long nobody wonders why the run has not ended yet (interface.md). */
static const double say_whom_after_s = 1.0;

struct run {
    const struct ml_options *options;
    struct ml_voice voice;
    struct ml_inherited inherited;
    struct ev_loop *loop;
    struct ml_signals signals;
    struct ml_tree tree;
    ev_timer whom_timer;
    pid_t root;
    bool root_runs;
    struct ml_ending root_ending;
};

static void end_run(struct run *run) {
    ev_break(run->loop, EVBREAK_ALL);
}

/* The root has stopped at the terminal's word; the shell that waits for us must see a stopped job,
 * and go on when it says so. */
static void stop_with_root(struct run *run, int stop_signal) {
    bool by_terminal = stop_signal == SIGTSTP || stop_signal == SIGTTIN || stop_signal == SIGTTOU;
    if (!by_terminal || getpgid(run->root) != getpgrp()) {
        return;
    }
    (void)raise(SIGSTOP);
    (void)kill(run->root, SIGCONT);
}

static void root_has_ended(struct run *run, const struct ml_ending *ending) {
    run->root_runs = false;
    run->root_ending = *ending;
    ev_timer_again(run->loop, &run->whom_timer);
}

static void take_children(struct run *run) {
    struct ml_tree_event event;
    while (ml_tree_next(&run->tree, &event)) {
        if (event.stopped) {
            if (event.pid == run->root) {
                stop_with_root(run, event.stop_signal);
            }
        } else if (event.pid == run->root && run->root_runs) {
            root_has_ended(run, &event.ending);
        }
    }
    if (!run->root_runs &&
        (run->options->end_with_root || ml_tree_left(&run->tree, NULL, 0) == 0)) {
        end_run(run);
    }
}

static void on_signal(void *context, int signal, int code) {
    struct run *run = context;
    switch (ml_signal_decide(signal, code, run->options->dump_signal, run->root_runs)) {
    case ML_SIGNAL_CHILDREN:
        take_children(run);
        break;
    case ML_SIGNAL_FORWARD:
        (void)kill(run->root, signal);
        break;
    case ML_SIGNAL_END:
        end_run(run);
        break;
    case ML_SIGNAL_DUMP:
    case ML_SIGNAL_IGNORE:
        break;
    }
}

static void on_whom_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct run *run = watcher->data;
    ev_timer_stop(loop, watcher);
    pid_t first = 0;
    size_t count = ml_tree_left(&run->tree, &first, 1);
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
        &run->voice,
        "%s has ended; waiting for %s (%d)%s. ^C ends the run now, --end-with-root does not wait",
        run->options->program[0],
        name,
        (int)first,
        others
    );
}

/* Start the program and stay with its tree. Returns the exit code. */
static int run_program(struct run *run, char *const *environment) {
    struct ml_complaint complaint = {.text = ""};
    struct ml_launch launch = {
        .argv = run->options->program, .environment = environment, .inherited = &run->inherited};
    struct ml_launched launched;
    if (ml_launcher_fork(&launch, &launched, &complaint) != ML_OK) {
        ml_say_error("%s", complaint.text);
        return ML_EXIT_FAILED;
    }
    run->root = launched.pid;
    run->root_runs = true;
    int exec_errno = 0;
    ml_launcher_release(&launched, &exec_errno);
    if (exec_errno != 0) {
        ml_say_error("%s: %s", run->options->program[0], strerror(exec_errno));
        return ml_launcher_exit_code(exec_errno);
    }
    ev_run(run->loop, 0);
    return ml_ending_exit_code(&run->root_ending);
}

int ml_run(const struct ml_options *options, char *const *environment) {
    struct run run = {.options = options, .voice = {.quiet = options->quiet}};
    struct ml_complaint complaint = {.text = ""};
    int exit_code = ML_EXIT_FAILED;
    if (options->mode != ML_MODE_NONE) {
        ml_say_error("--memlog=%s: only none is available yet", ml_mode_name(options->mode));
        return ML_EXIT_FAILED;
    }
    ml_inherited_take(&run.inherited);
    run.loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (run.loop == NULL) {
        ml_say_error("cannot make an event loop: %s", strerror(errno));
        return ML_EXIT_FAILED;
    }
    ev_timer_init(&run.whom_timer, on_whom_timer, 0., say_whom_after_s);
    run.whom_timer.data = &run;
    if (ml_tree_init(&run.tree, &complaint) != ML_OK ||
        ml_signals_open(&run.signals, run.loop, on_signal, &run, &complaint) != ML_OK) {
        ml_say_error("%s", complaint.text);
    } else {
        exit_code = run_program(&run, environment);
        ml_signals_close(&run.signals);
    }
    ev_loop_destroy(run.loop);
    return exit_code;
}
