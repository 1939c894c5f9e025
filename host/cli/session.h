/* What `memlog run` and `memlog attach` have in common: a loop, signals, an engine with its page,
 * and the run's end with its last dump. Room: host. Context: the main thread of memlog.
 *
 * One rule: a session ends once. What is asked for meanwhile is answered by the phase that it is
 * in. */
#ifndef MEMLOG_HOST_CLI_SESSION_H
#define MEMLOG_HOST_CLI_SESSION_H

#include <limits.h>

#include <ev.h>

#include "host/engine/engine.h"
#include "host/page/page.h"
#include "host/policy/options.h"
#include "host/process/launcher.h"
#include "host/process/log.h"
#include "host/process/signals.h"
#include "host/process/tree.h"

enum ml_session_phase {
    ML_SESSION_RUNS = 0,
    ML_SESSION_FINISHES, /* the final dump is being taken */
    ML_SESSION_LEAVES,   /* memlog leaves what it was attached to */
    ML_SESSION_DONE
};

struct ml_host_session {
    const struct ml_options *options;
    /* A signal; code as siginfo's. */
    void (*on_signal)(void *context, int signal, int code);
    /* As struct ml_engine_setup. May be NULL. */
    void (*on_left)(void *context);
    /* Everything but these three is set by ml_session_open. Of `log` the caller sets `quiet`. */
    struct ml_log log;
    struct ml_inherited inherited;
    struct ev_loop *loop;
    struct ml_signals signals;
    struct ml_process_tree tree;
    struct ml_engine *engine; /* NULL: --memlog=none */
    struct ml_page *page;     /* NULL: --no-page, or it could not be opened */
    const char *preload_path;
    enum ml_session_phase phase;
    unsigned end_requests; /* signals that ask the run to end */
    char analyzer_path[PATH_MAX];
    char library_path[PATH_MAX];
    char dump_path[PATH_MAX]; /* of the final dump; "": there is none */
};

/* Open it; callbacks get the session. False: stderr says why. In both cases end with
 * ml_session_close. */
bool ml_session_open(struct ml_host_session *session);
void ml_session_close(struct ml_host_session *session);

/* Take the final dump, leave what memlog is attached to, and break the loop. */
void ml_session_finish(struct ml_host_session *session);

/* The same without a dump. */
void ml_session_leave(struct ml_host_session *session);

/* A signal asks for the end: the first one as ml_session_finish, the second one without the dump,
 * the third one at once. */
void ml_session_end_now(struct ml_host_session *session);

/* Run the loop until the session is done, then say what was recorded. */
void ml_session_run(struct ml_host_session *session);

/* A dump, as a signal asks for it. */
void ml_session_dump(struct ml_host_session *session);

/* Tell the engine that a child has ended. */
void ml_session_child_ended(
    struct ml_host_session *session, const struct ml_process_tree_event *event
);

#endif
