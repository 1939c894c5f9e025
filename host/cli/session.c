#include "host/cli/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "host/cli/summary.h"
#include "host/process/paths.h"

static void on_let_go(void *context) {
    struct ml_host_session *session = context;
    session->phase = ML_SESSION_DONE;
    ev_break(session->loop, EVBREAK_ALL);
}

void ml_session_leave(struct ml_host_session *session) {
    session->phase = ML_SESSION_LEAVES;
    ml_engine_let_go(session->engine, on_let_go, session);
}

static void on_finished(void *context, const char *path, bool complete, const char *trouble) {
    struct ml_host_session *session = context;
    if (session->phase != ML_SESSION_FINISHES) {
        return; /* a second request to end has given up the dump */
    }
    (void)snprintf(session->dump_path, sizeof(session->dump_path), "%s", path);
    if (path[0] == '\0') {
        ml_say(&session->log, "no dump was taken: %s", trouble);
    } else if (!complete) {
        ml_say(
            &session->log,
            "the profile is not complete%s%s",
            trouble[0] != '\0' ? ": " : "",
            trouble
        );
    }
    ml_session_leave(session);
}

void ml_session_finish(struct ml_host_session *session) {
    if (session->phase != ML_SESSION_RUNS) {
        return;
    }
    session->phase = ML_SESSION_FINISHES;
    if (session->engine != NULL) {
        ml_engine_finish(session->engine, on_finished, session);
    } else {
        on_let_go(session);
    }
}

/* The signal that ended the program does not count, so that a person who presses ^C once more does
 * not lose the dump. */
void ml_session_end_now(struct ml_host_session *session) {
    session->end_requests++;
    if (session->phase == ML_SESSION_RUNS) {
        ml_session_finish(session);
    } else if (session->phase == ML_SESSION_LEAVES) {
        ml_say(&session->log, "ended before all processes were left as they were");
        on_let_go(session);
    } else if (session->end_requests < 2) {
        ml_say(&session->log, "the final dump is being written; once more ends without it");
    } else if (session->phase == ML_SESSION_FINISHES) {
        ml_say(&session->log, "ended without a final dump");
        ml_session_leave(session);
    }
}

static void on_dump(void *context, const char *path, bool complete, const char *trouble) {
    struct ml_host_session *session = context;
    if (path[0] == '\0') {
        ml_say(&session->log, "no dump was taken: %s", trouble);
    } else {
        ml_say(
            &session->log,
            "%s%s%s",
            path,
            complete ? "" : ", not complete: ",
            complete ? "" : trouble
        );
    }
}

void ml_session_dump(struct ml_host_session *session) {
    if (session->engine != NULL) {
        ml_engine_dump(session->engine, MEMLOG_SERVICE_DUMP_REASON_SIGNAL, on_dump, session);
    }
}

void ml_session_child_ended(
    struct ml_host_session *session, const struct ml_process_tree_event *event
) {
    if (session->engine != NULL) {
        ml_engine_child_ended(session->engine, event->pid, &event->ending);
    }
}

static void on_notice(void *context, const char *text) {
    struct ml_host_session *session = context;
    ml_say(&session->log, "%s", text);
}

static void on_helper(void *context, pid_t pid) {
    struct ml_host_session *session = context;
    ml_process_tree_add_helper(&session->tree, pid);
    if (session->engine != NULL) { /* during its opening the engine registers its service itself */
        ml_engine_add_helper(session->engine, pid);
    }
}

static void on_left(void *context) {
    struct ml_host_session *session = context;
    if (session->on_left != NULL) {
        session->on_left(session);
    }
}

/* It is an error if a page with an address from the command line cannot be opened. Without the
 * default page the run goes on. */
static enum ml_status open_page(struct ml_host_session *session, struct ml_error_message *error) {
    struct ml_error_message why = {.text = ""};
    const struct ml_page_setup setup = {
        .loop = session->loop,
        .engine = session->engine,
        .place = &session->options->page,
        .analyzer_path = session->analyzer_path,
        .inherited = &session->inherited,
        .on_helper = on_helper,
        .context = session,
    };
    if (session->options->page.kind == ML_PAGE_NONE) {
        return ML_OK;
    }
    enum ml_status status = ml_paths_find(ML_ANALYZER_FILE, session->analyzer_path, &why);
    if (status == ML_OK) {
        status = ml_page_open(&setup, &session->page, &why);
    }
    if (status == ML_OK) {
        ml_say(&session->log, "page: %s", ml_page_url(session->page));
    } else if (session->options->page.asked) {
        ml_error_set(error, "%s", why.text);
        return status;
    } else {
        ml_say(&session->log, "there is no page: %s", why.text);
    }
    return ML_OK;
}

/* Whether this process will hold S3 keys or a token. */
static bool has_secrets(const struct ml_options *options) {
    return options->upload.url != NULL &&
           (options->upload.target.kind == ML_UPLOAD_S3 || options->upload.token_file != NULL);
}

static enum ml_status open_engine(struct ml_host_session *session, struct ml_error_message *error) {
    char service_path[PATH_MAX];
    enum ml_status status = ml_paths_find(ML_PRELOAD_FILE, session->library_path, error);
    if (status == ML_OK) {
        status = ml_paths_find(ML_SERVICE_FILE, service_path, error);
    }
    if (status != ML_OK) {
        return status;
    }
    const struct ml_engine_setup setup = {
        .loop = session->loop,
        .options = session->options,
        .inherited = &session->inherited,
        .service_path = service_path,
        .on_service = on_helper,
        .on_notice = on_notice,
        .on_left = on_left,
        .context = session,
    };
    if (has_secrets(session->options)) {
        /* Keep the secrets out of core dumps of this process. An exec resets this in its child. */
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    status = ml_engine_open(&setup, &session->engine, error);
    if (status != ML_OK) {
        return status;
    }
    /* With strict the program must not start before the service is in its sandbox. */
    while (session->options->sandbox == ML_SANDBOX_STRICT &&
           ml_engine_service_is_starting(ml_engine_service_state(session->engine))) {
        ev_run(session->loop, EVRUN_ONCE);
    }
    if (session->options->sandbox == ML_SANDBOX_STRICT &&
        ml_engine_service_state(session->engine) == ML_ENGINE_ALONE) {
        ml_error_set(
            error, "--sandbox=strict: there is no service in a whole sandbox, nothing was run"
        );
        return ML_ENV_REFUSED;
    }
    status = ml_engine_preload_path(
        session->engine, session->library_path, &session->preload_path, error
    );
    return status == ML_OK ? open_page(session, error) : status;
}

bool ml_session_open(struct ml_host_session *session) {
    struct ml_error_message error = {.text = ""};
    ml_inherited_take(&session->inherited);
    session->signals.fd = -1;
    session->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (session->loop == NULL) {
        ml_say_error("cannot make an event loop: %s", strerror(errno));
        return false;
    }
    if (ml_process_tree_init(&session->tree, &error) != ML_OK ||
        ml_signals_open(&session->signals, session->loop, session->on_signal, session, &error) !=
            ML_OK ||
        (session->options->mode != ML_MODE_NONE && open_engine(session, &error) != ML_OK)) {
        ml_say_error("%s", error.text);
        return false;
    }
    return true;
}

void ml_session_close(struct ml_host_session *session) {
    if (session->loop == NULL) {
        return;
    }
    ml_page_close(session->page);
    ml_engine_close(session->engine);
    ml_page_free(session->page);
    ml_signals_close(&session->signals);
    ev_loop_destroy(session->loop);
}

void ml_session_run(struct ml_host_session *session) {
    while (session->phase != ML_SESSION_DONE) {
        ev_run(session->loop, 0);
    }
    if (session->dump_path[0] != '\0') {
        ml_summary(&session->log, &session->inherited, session->dump_path);
    }
}
