/* What the command socket answers: `memlog ps`, `dump`, `start`, `stop`, `env`. Room: host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/engine_internal.h"

/* A command that waits for the service. The connection may go before the answer comes. */
struct ml_command_call {
    struct ml_connection *connection; /* NULL: nobody waits any more */
    struct ml_engine *engine;
    struct ml_call call;
    bool waits; /* for an upload to arrive */
    char path[PATH_MAX];
};

void ml_command_forget(struct ml_connection *connection) {
    if (connection->pending != NULL) {
        connection->pending->connection = NULL;
        connection->pending = NULL;
    }
}

/* Only the user himself and root command a host; one command at a time. NULL: refused, and the
 * connection is closed. */
static struct ml_command_call *
begin(struct ml_connection *connection, const struct ml_call *call, uint32_t version) {
    bool permitted = call->peer.uid == geteuid() || call->peer.uid == 0;
    if (!permitted || version != MEMLOG_HOST_HOST_VERSION || connection->pending != NULL) {
        ml_connection_close(connection);
        return NULL;
    }
    struct ml_command_call *pending = calloc(1, sizeof(*pending));
    if (pending == NULL) {
        ml_connection_close(connection);
        return NULL;
    }
    *pending = (struct ml_command_call
    ){.connection = connection, .engine = connection->engine, .call = *call};
    connection->pending = pending;
    return pending;
}

/* True if somebody still waits for the answer. */
static bool end(struct ml_command_call *pending) {
    if (pending->connection == NULL) {
        return false;
    }
    pending->connection->pending = NULL;
    return true;
}

/* The figures that belong to each member: by its id. The caller's; NULL without any. */
static const struct memlog_service_client_figures **
figures_by_id(const struct ml_members *members, const struct memlog_service_figures_reply *reply) {
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is meant */
    const struct memlog_service_client_figures **by_id =
        calloc((size_t)members->count + 1, sizeof(*by_id));
    for (uint32_t i = 0; by_id != NULL && i < reply->clients.count; i++) {
        const struct memlog_service_client_figures *figures = &reply->clients.items[i];
        if (figures->id <= members->count) {
            by_id[figures->id] = figures;
        }
    }
    return by_id;
}

static struct memlog_host_process_row
make_row(const struct ml_member *member, const struct memlog_service_client_figures *figures) {
    struct memlog_host_process_row row = {
        .id = member->id,
        .pid = (uint32_t)member->pid,
        .parent_pid = (uint32_t)member->parent_pid,
        .role = ml_string_of(ml_role_name(member->role)),
        .state = ml_string_of(ml_member_state_name(member->state)),
        .recording = member->recording,
        .footprint_bytes = member->footprint_bytes,
        .name = ml_string_of(member->name),
        .note = ml_string_of(member->note),
    };
    if (figures != NULL) {
        row.live_bytes = figures->totals.live_bytes;
        row.live_blocks = figures->totals.live_blocks;
        row.peak_bytes = figures->totals.peak_bytes;
        row.total_bytes = figures->totals.total_bytes;
        row.events = figures->events;
        row.lost_events = figures->lost_events;
        row.waits = figures->waits;
        row.waited_ns = figures->waited_ns;
        row.longest_wait_ns = figures->longest_wait_ns;
        row.folded_processes = figures->folded_processes;
        row.sampling_bytes = figures->sampling_bytes;
        if (figures->trouble.count_bytes > 0) {
            row.note = figures->trouble;
        }
    }
    return row;
}

/* The service knows no more of it by itself: another row tells of it. */
static bool is_folded(
    const struct ml_member *member, const struct memlog_service_client_figures *const *by_id
) {
    return by_id != NULL && member->in_service && member->state != ML_MEMBER_RUNNING &&
           by_id[member->id] == NULL;
}

static struct memlog_host_uploads uploads_of(
    const struct ml_upload_figures *figures, struct ml_string out_history[ML_UPLOAD_HISTORY]
) {
    uint32_t count = 0;
    const uint64_t first =
        figures->history_count < ML_UPLOAD_HISTORY ? 0 : figures->history_count - ML_UPLOAD_HISTORY;
    for (uint64_t i = first; i < figures->history_count; i++) {
        out_history[count++] = ml_string_of(figures->history[i % ML_UPLOAD_HISTORY]);
    }
    return (struct memlog_host_uploads
    ){.target = ml_string_cut(figures->target, MEMLOG_HOST_UPLOADS_TARGET_LIMIT),
      .sent = figures->sent,
      .sent_bytes = figures->sent_bytes,
      .retries = figures->retries,
      .given_up = figures->given_up,
      .refused = figures->refused,
      .waiting = figures->waiting,
      .next_ms = figures->next_ms,
      .last_error = ml_string_of(figures->last_error),
      .history = {.items = out_history, .count = count}};
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_command_call *pending = context;
    if (end(pending)) {
        struct ml_engine *engine = pending->engine;
        const struct ml_members *members = &engine->members;
        struct memlog_host_process_row *rows = calloc(members->count + 1, sizeof(*rows));
        const struct memlog_service_client_figures **by_id =
            status == ML_OK ? figures_by_id(members, reply) : NULL;
        struct memlog_host_ps_reply answer = {
            .program = ml_string_cut(
                engine->root_argv != NULL ? engine->root_argv[0] : "",
                MEMLOG_HOST_PS_REPLY_PROGRAM_LIMIT
            ),
        };
        for (uint32_t i = 0; rows != NULL && i < members->count; i++) {
            const struct ml_member *member = members->items[i];
            const struct memlog_service_client_figures *figures =
                by_id != NULL ? by_id[member->id] : NULL;
            if (figures != NULL || !is_folded(member, by_id)) {
                rows[answer.processes.count++] = make_row(member, figures);
            }
        }
        answer.processes.items = rows;
        struct ml_upload_figures figures = {.target = NULL};
        struct ml_string history[ML_UPLOAD_HISTORY];
        if (engine->uploader != NULL) {
            ml_uploader_figures(engine->uploader, &figures);
            answer.uploads = uploads_of(&figures, history);
        }
        (void)!memlog_host_ps_answer(&pending->call, &answer);
        free(by_id);
        free(rows);
    }
    free(pending);
}

static void
on_ps(void *context, const struct ml_call *call, const struct memlog_host_ps_request *request) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = begin(connection, call, request->version);
    if (pending != NULL) {
        ml_service_link_figures(&engine->link, on_figures, pending);
    }
}

static void on_dump_done(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    struct ml_command_call *pending = context;
    if (end(pending)) {
        char *full = path[0] != '\0' ? realpath(path, NULL) : NULL;
        const struct memlog_host_dump_reply answer = {
            .path = ml_string_cut(full != NULL ? full : path, MEMLOG_HOST_DUMP_REPLY_PATH_LIMIT),
            .trouble = ml_string_cut(trouble, MEMLOG_HOST_DUMP_REPLY_TROUBLE_LIMIT),
        };
        (void)!memlog_host_dump_answer(&pending->call, &answer);
        free(full);
    }
    free(pending);
}

static void
on_dump(void *context, const struct ml_call *call, const struct memlog_host_dump_request *request) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = begin(connection, call, request->version);
    if (pending == NULL) {
        return;
    }
    struct ml_complaint complaint = {.text = ""};
    struct ml_dump_wish wish = {
        .reason = MEMLOG_SERVICE_DUMP_REASON_MANUAL,
        .pids = request->pids.items,
        .pids_count = request->pids.count,
        .words = request->reason.data,
        .words_bytes = request->reason.count_bytes,
    };
    char role[MEMLOG_HOST_DUMP_REQUEST_ROLE_LIMIT + 1];
    (void)snprintf(
        role,
        sizeof(role),
        "%.*s",
        (int)request->role.count_bytes,
        request->role.count_bytes > 0 ? request->role.data : ""
    );
    wish.has_role = role[0] != '\0';
    if (wish.has_role && ml_role_parse(role, &wish.role, &complaint) != ML_OK) {
        on_dump_done(pending, "", false, complaint.text);
        return;
    }
    ml_engine_dump_wish(engine, &wish, on_dump_done, pending);
}

/* ---- start and stop: one answer for all their processes */

struct control;

struct control_one {
    struct control *control;
    uint32_t pid;
    char trouble[MEMLOG_HOST_OUTCOME_TROUBLE_LIMIT + 1];
};

struct control {
    struct ml_command_call *pending;
    bool is_start, is_rate;
    uint32_t count;
    uint32_t waiting; /* processes of which the end is not known; one more while they are begun */
    struct control_one ones[];
};

static void finish_control(struct control *control) {
    struct ml_command_call *pending = control->pending;
    if (--control->waiting > 0) {
        return;
    }
    struct memlog_host_outcome *outcomes = calloc(control->count + 1, sizeof(*outcomes));
    for (uint32_t i = 0; outcomes != NULL && i < control->count; i++) {
        const struct control_one *one = &control->ones[i];
        outcomes[i] = (struct memlog_host_outcome
        ){.pid = one->pid, .done = one->trouble[0] == '\0', .trouble = ml_string_of(one->trouble)};
    }
    const uint32_t count = outcomes != NULL ? control->count : 0;
    const bool awaited = end(pending);
    if (awaited && control->is_start) {
        const struct memlog_host_start_reply reply = {
            .outcomes = {.items = outcomes, .count = count}};
        (void)!memlog_host_start_answer(&pending->call, &reply);
    } else if (awaited && control->is_rate) {
        const struct memlog_host_rate_reply reply = {
            .outcomes = {.items = outcomes, .count = count}};
        (void)!memlog_host_rate_answer(&pending->call, &reply);
    } else if (awaited) {
        const struct memlog_host_stop_reply reply = {
            .outcomes = {.items = outcomes, .count = count}};
        (void)!memlog_host_stop_answer(&pending->call, &reply);
    }
    free(outcomes);
    free(pending);
    free(control);
}

static void on_controlled(void *context, const char *trouble) {
    struct control_one *one = context;
    (void)snprintf(one->trouble, sizeof(one->trouble), "%s", trouble);
    finish_control(one->control);
}

static struct control *control_new(
    struct ml_connection *connection,
    const struct ml_call *call,
    uint32_t version,
    const uint32_t *pids,
    uint32_t count
) {
    struct ml_command_call *pending = begin(connection, call, version);
    if (pending == NULL) {
        return NULL;
    }
    struct control *control = calloc(1, sizeof(*control) + count * sizeof(control->ones[0]));
    if (control == NULL) {
        ml_connection_close(connection);
        free(pending);
        return NULL;
    }
    control->pending = pending;
    control->count = count;
    control->waiting = count + 1;
    for (uint32_t i = 0; i < count; i++) {
        control->ones[i].control = control;
        control->ones[i].pid = pids[i];
    }
    return control;
}

/* The member that a wish is about; NULL: there is none, which is said. */
static struct ml_member *member_of(struct ml_engine *engine, struct control_one *one) {
    struct ml_member *member = ml_members_running(&engine->members, (pid_t)one->pid);
    if (member == NULL) {
        on_controlled(
            one,
            ml_members_newest(&engine->members, (pid_t)one->pid) != NULL
                ? "it has ended"
                : "no process of this run that memlog could be loaded into"
        );
    }
    return member;
}

static void on_start(
    void *context, const struct ml_call *call, const struct memlog_host_start_request *request
) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct control *control =
        control_new(connection, call, request->version, request->pids.items, request->pids.count);
    if (control == NULL) {
        return;
    }
    control->is_start = true;
    for (uint32_t i = 0; i < control->count; i++) {
        struct ml_member *member = member_of(engine, &control->ones[i]);
        if (member != NULL) {
            ml_engine_start_member(
                engine,
                member,
                request->sampling_bytes,
                request->stack_mode < ML_STACK_MODE_COUNT ? request->stack_mode : 0,
                on_controlled,
                &control->ones[i]
            );
        }
    }
    finish_control(control);
}

static void
on_rate(void *context, const struct ml_call *call, const struct memlog_host_rate_request *request) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct control *control =
        control_new(connection, call, request->version, request->pids.items, request->pids.count);
    if (control == NULL) {
        return;
    }
    control->is_rate = true;
    for (uint32_t i = 0; i < control->count; i++) {
        struct ml_member *member = member_of(engine, &control->ones[i]);
        if (member != NULL) {
            on_controlled(
                &control->ones[i], ml_engine_rate_member(engine, member, request->sampling_bytes)
            );
        }
    }
    finish_control(control);
}

static void
on_stop(void *context, const struct ml_call *call, const struct memlog_host_stop_request *request) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct control *control =
        control_new(connection, call, request->version, request->pids.items, request->pids.count);
    if (control == NULL) {
        return;
    }
    for (uint32_t i = 0; i < control->count; i++) {
        struct ml_member *member = member_of(engine, &control->ones[i]);
        if (member != NULL) {
            ml_engine_stop_member(engine, member, on_controlled, &control->ones[i]);
        }
    }
    finish_control(control);
}

static void
on_join(void *context, const struct ml_call *call, const struct memlog_host_join_request *request) {
    struct ml_connection *connection = context;
    const struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = begin(connection, call, request->version);
    if (pending != NULL) {
        const struct memlog_host_join_reply reply = {
            .preload = ml_string_of(engine->preload_path),
            .socket = ml_string_of(engine->rendezvous.client_path),
        };
        (void)end(pending);
        (void)!memlog_host_join_answer(&pending->call, &reply);
        free(pending);
    }
}

static void answer_upload(struct ml_command_call *pending, const char *path, const char *trouble) {
    if (end(pending)) {
        const struct memlog_host_upload_reply answer = {
            .path = ml_string_cut(path, MEMLOG_HOST_UPLOAD_REPLY_PATH_LIMIT),
            .trouble = ml_string_cut(trouble, MEMLOG_HOST_UPLOAD_REPLY_TROUBLE_LIMIT),
        };
        (void)!memlog_host_upload_answer(&pending->call, &answer);
    }
    free(pending);
}

static void on_uploaded(void *context, const char *trouble) {
    struct ml_command_call *pending = context;
    answer_upload(pending, pending->path, trouble);
}

static void on_upload_dump(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    struct ml_command_call *pending = context;
    if (path[0] == '\0') {
        answer_upload(pending, "", trouble);
        return;
    }
    (void)snprintf(pending->path, sizeof(pending->path), "%s", path);
    if (pending->waits) {
        ml_uploader_submit(pending->engine->uploader, path, on_uploaded, pending);
    } else {
        ml_uploader_submit(pending->engine->uploader, path, NULL, NULL);
        answer_upload(pending, path, "");
    }
}

static void on_upload(
    void *context, const struct ml_call *call, const struct memlog_host_upload_request *request
) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = begin(connection, call, request->version);
    if (pending == NULL) {
        return;
    }
    if (engine->uploader == NULL) {
        answer_upload(
            pending, "", "it was started without --upload=URL: nothing leaves this machine"
        );
        return;
    }
    pending->waits = request->wait;
    ml_engine_dump(engine, MEMLOG_SERVICE_DUMP_REASON_MANUAL, NULL, 0, on_upload_dump, pending);
}

const struct memlog_host_host_handlers ml_engine_command_handlers = {
    .ps = on_ps,
    .dump = on_dump,
    .start = on_start,
    .stop = on_stop,
    .rate = on_rate,
    .join = on_join,
    .upload = on_upload};
