#include "host/cli/attach.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "host/attach/precondition.h"
#include "host/cli/run.h"
#include "host/cli/session.h"
#include "host/process/info.h"
#include "host/process/loop.h"

static const double ms_per_s = 1e3;

struct attach;

/* A process that is to be recorded. */
struct one {
    struct attach *attach;
    pid_t pid;
};

struct attach {
    struct ml_host_session session; /* first: callbacks get it */
    ev_timer duration_timer;
    struct one ones[ML_PIDS_MAX];
    size_t count;
    size_t waiting;  /* of which it is not known whether it is recorded */
    size_t attached; /* that are */
    bool has_left;   /* all that were attached have ended */
};

static void add(struct attach *attach, pid_t pid) {
    for (size_t i = 0; i < attach->count; i++) {
        if (attach->ones[i].pid == pid) {
            return;
        }
    }
    if (attach->count < ML_PIDS_MAX) {
        attach->ones[attach->count++] = (struct one){.attach = attach, .pid = pid};
    }
}

/* Those that the command line names. False: none has the name, which was said. */
static bool add_named(struct attach *attach, const char *regex) {
    struct ml_error_message error = {.text = ""};
    pid_t pids[ML_PIDS_MAX];
    size_t count = 0;
    struct ml_patterns *name = ml_patterns_new();
    if (name != NULL && ml_patterns_add(name, regex, 0, &error) == ML_OK) {
        count = ml_attach_find(name, getpid(), pids, ML_PIDS_MAX);
    }
    ml_patterns_free(name);
    for (size_t i = 0; i < count && i < ML_PIDS_MAX; i++) {
        add(attach, pids[i]);
    }
    if (count == 0) {
        ml_say_error("no process of yours has the name %s", regex);
    }
    return count > 0;
}

/* Leave out those that have less private memory, and say how many. */
static void drop_small(struct attach *attach, uint64_t min_private_bytes) {
    char size[ML_SIZE_TEXT_BYTES];
    const size_t all = attach->count;
    size_t kept = 0;
    for (size_t i = 0; min_private_bytes > 0 && i < all; i++) {
        if (ml_process_footprint(attach->ones[i].pid).private_bytes >= min_private_bytes) {
            attach->ones[kept++] = attach->ones[i];
        }
    }
    if (min_private_bytes > 0 && kept < all) {
        attach->count = kept;
        ml_say_error(
            "%zu of %zu processes have less than %s of private memory, and are not recorded",
            all - kept,
            all,
            ml_size_text(min_private_bytes, size)
        );
    }
}

static void say_refused(pid_t pid, const char *why) {
    ml_say_error("%d is not recorded: %s", (int)pid, why);
}

/* Leave out those that cannot be attached to, before anything is begun, and say why. */
static void drop_refused(struct attach *attach) {
    size_t kept = 0;
    for (size_t i = 0; i < attach->count; i++) {
        char why[ML_ATTACHABLE_TEXT_BYTES];
        ml_attach_why_not(attach->ones[i].pid, why);
        if (why[0] == '\0') {
            attach->ones[kept++] = attach->ones[i];
        } else {
            say_refused(attach->ones[i].pid, why);
        }
    }
    attach->count = kept;
}

/* All that are to be recorded are, or will not be. */
static void on_all_answered(struct attach *attach) {
    struct ml_host_session *session = &attach->session;
    if (session->phase != ML_SESSION_RUNS) {
        return;
    }
    if (attach->attached == 0) {
        ml_session_leave(session);
    } else if (attach->has_left) {
        ml_session_finish(session);
    } else if (session->options->duration_ms > 0) {
        ml_timer_start(
            session->loop, &attach->duration_timer, (double)session->options->duration_ms / ms_per_s
        );
    } else {
        ml_say(&session->log, "^C ends the recording");
    }
}

static void on_answered(void *context, const char *trouble) {
    struct one *one = context;
    struct attach *attach = one->attach;
    if (trouble[0] == '\0') {
        attach->attached++;
    } else {
        say_refused(one->pid, trouble);
    }
    if (--attach->waiting == 0) {
        on_all_answered(attach);
    }
}

static void on_duration(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct attach *attach = watcher->data;
    ml_session_finish(&attach->session);
}

static void on_left(void *context) {
    struct attach *attach = context;
    attach->has_left = true;
    if (attach->waiting == 0 && attach->attached > 0) {
        ev_timer_stop(attach->session.loop, &attach->duration_timer);
        ml_session_finish(&attach->session);
    }
}

/* Helpers of memlog's own. */
static void take_children(struct ml_host_session *session) {
    struct ml_process_tree_event event;
    while (ml_process_tree_next(&session->tree, &event)) {
        if (!event.stopped) {
            ml_session_child_ended(session, &event);
        }
    }
}

static void on_signal(void *context, int signal, int code) {
    struct attach *attach = context;
    struct ml_host_session *session = &attach->session;
    switch (ml_signal_decide(signal, code, session->options->dump_signal, false)) {
    case ML_SIGNAL_CHILDREN:
        take_children(session);
        break;
    case ML_SIGNAL_END:
        ev_timer_stop(session->loop, &attach->duration_timer);
        ml_session_end_now(session);
        break;
    case ML_SIGNAL_DUMP:
        ml_session_dump(session);
        break;
    case ML_SIGNAL_FORWARD:
    case ML_SIGNAL_IGNORE:
        break;
    }
}

static int record(struct attach *attach) {
    struct ml_host_session *session = &attach->session;
    struct ml_error_message error = {.text = ""};
    if (ml_engine_set_attached(session->engine, attach->ones[0].pid, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    attach->waiting = attach->count + 1;
    for (size_t i = 0; i < attach->count; i++) {
        struct one *one = &attach->ones[i];
        ml_engine_start_process(session->engine, one->pid, 0, 0, on_answered, one);
    }
    if (--attach->waiting == 0) {
        on_all_answered(attach);
    }
    ml_session_run(session);
    return attach->attached > 0 ? 0 : ML_EXIT_FAILED;
}

int ml_attach(const struct ml_options *options) {
    struct attach attach = {
        .session = {
            .options = options,
            .log = {.quiet = options->quiet},
            .on_signal = on_signal,
            .on_left = on_left}};
    int exit_code = ML_EXIT_FAILED;
    ml_timer_init(&attach.duration_timer, on_duration, &attach);
    for (uint32_t i = 0; i < options->pids.count; i++) {
        add(&attach, (pid_t)options->pids.items[i]);
    }
    if (options->name != NULL && !add_named(&attach, options->name) && attach.count == 0) {
        return ML_EXIT_FAILED;
    }
    drop_small(&attach, options->min_private_bytes);
    drop_refused(&attach);
    if (attach.count == 0) {
        return ML_EXIT_FAILED;
    }
    if (ml_session_open(&attach.session)) {
        exit_code = record(&attach);
    }
    ml_session_close(&attach.session);
    return exit_code;
}
