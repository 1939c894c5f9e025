/* What the command socket answers: `memlog ps`, `dump`, `upload`, `env`. Room: host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/engine/commands/call.h"
#include "host/engine/commands/connection.h"
#include "host/engine/list/judge.h"
#include "host/engine/list/walk.h"
#include "host/engine/state.h"

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

/* What is to be said of a row that has nothing worse. */
static const char *note_of_memory(int error) {
    if (error == 0) {
        return "";
    }
    return error == EACCES || error == EPERM
               ? "its private memory is not known: only its user, or root, may read it"
               : "its private memory is not known: /proc has no smaps_rollup of it";
}

static struct memlog_host_process_row
make_row(const struct ml_member *member, const struct memlog_service_client_figures *figures) {
    struct memlog_host_process_row row = {
        .id = member->id,
        .pid = (uint32_t)member->pid,
        .parent_pid = (uint32_t)member->parent_pid,
        .role = ml_string_of(ml_role_name(member->role)),
        .state = ml_string_of(ml_member_state_name(member->state)),
        .recording = ml_recording_is_on(member->recording),
        .footprint_bytes = member->footprint_bytes,
        .name = ml_string_of(member->name),
        .note = ml_string_of(member->note),
        .promised_ppm = member->overhead.promised_ppm,
        .cost_ppm = ml_overhead_sum(member->overhead.whole),
        .recent_cost_ppm = ml_overhead_sum(member->overhead.recent),
        .cost_measured = member->overhead.is_measured,
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
        if (figures->trouble.count_bytes > 0 && member->note[0] == '\0') {
            row.note = figures->trouble;
        }
    }
    if (row.note.count_bytes == 0 && member->state == ML_MEMBER_RUNNING) {
        row.note = ml_string_of(note_of_memory(member->footprint_error));
    }
    return row;
}

static struct memlog_host_process_row row_of_unrecorded(const struct ml_unrecorded *one) {
    return (struct memlog_host_process_row){
        .id = one->id,
        .pid = (uint32_t)one->pid,
        .parent_pid = (uint32_t)one->parent_pid,
        .role = ml_string_of(ml_role_name(one->role)),
        .state = ml_string_of(ml_member_state_name(one->state)),
        .footprint_bytes = one->footprint_bytes,
        .name = ml_string_of(one->name),
        .note = ml_string_of(one->reason),
        .folded_processes = one->folded_processes,
    };
}

/* Whom no profile tells of, behind the members' rows. */
static void add_unrecorded(struct ml_engine *engine, struct memlog_host_ps_reply *answer) {
    struct memlog_host_process_row *rows =
        (struct memlog_host_process_row *)(uintptr_t)answer->processes.items;
    const struct ml_unrecorded_table *table = &engine->unrecorded;
    for (uint32_t i = 0; rows != NULL && i < table->count &&
                         answer->processes.count < MEMLOG_HOST_PS_REPLY_PROCESSES_LIMIT;
         i++) {
        ml_list_judge(engine, table->items[i]);
        rows[answer->processes.count++] = row_of_unrecorded(table->items[i]);
    }
}

/* The service knows no more of it by itself: another row tells of it. */
static bool is_folded(
    const struct ml_member *member, const struct memlog_service_client_figures *const *by_id
) {
    return by_id != NULL && ml_recording_in_service(member->recording) &&
           member->state != ML_MEMBER_RUNNING && by_id[member->id] == NULL;
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_command_call *pending = context;
    if (ml_command_end(pending)) {
        struct ml_engine *engine = pending->engine;
        const struct ml_members *members = &engine->members;
        ml_list_walk(engine);
        struct memlog_host_process_row *rows =
            calloc((size_t)members->count + engine->unrecorded.count + 1, sizeof(*rows));
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
        add_unrecorded(engine, &answer);
        if (engine->uploader != NULL) {
            answer.uploads = ml_uploader_figures(engine->uploader);
        }
        int folder_fd = -1;
        const char *name = ml_engine_dumps_folder(engine, &folder_fd);
        char *folder = name[0] != '\0' ? realpath(name, NULL) : NULL;
        answer.folder =
            ml_string_cut(folder != NULL ? folder : "", MEMLOG_HOST_PS_REPLY_FOLDER_LIMIT);
        (void)!memlog_host_ps_answer(&pending->call, &answer);
        free(folder);
        free(by_id);
        free(rows);
    }
    free(pending);
}

static void
on_ps(void *context, const struct ml_call *call, const struct memlog_host_ps_request *request) {
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = ml_command_begin(connection, call, request->version);
    if (pending != NULL) {
        ml_engine_figures(engine, on_figures, pending);
    }
}

static void on_dump_done(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    struct ml_command_call *pending = context;
    if (ml_command_end(pending)) {
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
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = ml_command_begin(connection, call, request->version);
    if (pending == NULL) {
        return;
    }
    struct ml_error_message error = {.text = ""};
    struct ml_engine_dump_request wanted = {
        .reason = MEMLOG_SERVICE_DUMP_REASON_MANUAL,
        .pids = request->pids.items,
        .pids_count = request->pids.count,
        .words = request->reason.data,
        .words_bytes = request->reason.count_bytes,
    };
    char role[MEMLOG_HOST_DUMP_REQUEST_ROLE_LIMIT + 1];
    ml_string_copy(role, sizeof(role), request->role);
    wanted.has_role = role[0] != '\0';
    if (wanted.has_role && ml_role_parse(role, &wanted.role, &error) != ML_OK) {
        on_dump_done(pending, "", false, error.text);
        return;
    }
    ml_engine_request_dump(engine, &wanted, on_dump_done, pending);
}

/* A request for a snapshot, and the file that it is written to. */
struct snapshot_call {
    struct ml_command_call *pending;
    int fd; /* a memfd, so closing it waits for nobody */
};

static void on_snapshot_done(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    struct snapshot_call *snapshot = context;
    struct ml_command_call *pending = snapshot->pending;
    (void)close(snapshot->fd);
    free(snapshot);
    if (ml_command_end(pending)) {
        const char *why = trouble[0] != '\0' ? trouble : "there is no service";
        const struct memlog_host_snapshot_reply answer = {
            .trouble =
                ml_string_cut(path[0] != '\0' ? "" : why, MEMLOG_HOST_SNAPSHOT_REPLY_TROUBLE_LIMIT),
        };
        (void)!memlog_host_snapshot_answer(&pending->call, &answer);
    }
    free(pending);
}

static void on_snapshot(
    void *context, const struct ml_call *call, const struct memlog_host_snapshot_request *request
) {
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = ml_command_begin(connection, call, request->version);
    struct snapshot_call *snapshot = pending != NULL ? calloc(1, sizeof(*snapshot)) : NULL;
    if (snapshot == NULL) {
        (void)close(request->file);
        if (pending != NULL) {
            (void)ml_command_end(pending);
            ml_connection_close(connection);
        }
        free(pending);
        return;
    }
    *snapshot = (struct snapshot_call){.pending = pending, .fd = request->file};
    ml_engine_snapshot(
        engine, MEMLOG_SERVICE_DUMP_CONTENT_PROFILE, false, snapshot->fd, on_snapshot_done, snapshot
    );
}

static void
on_join(void *context, const struct ml_call *call, const struct memlog_host_join_request *request) {
    struct ml_engine_connection *connection = context;
    const struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = ml_command_begin(connection, call, request->version);
    if (pending != NULL) {
        const struct memlog_host_join_reply reply = {
            .preload = ml_string_of(engine->preload_path),
            .socket = ml_string_of(engine->directory.client_path),
        };
        (void)ml_command_end(pending);
        (void)!memlog_host_join_answer(&pending->call, &reply);
        free(pending);
    }
}

static void answer_upload(struct ml_command_call *pending, const char *path, const char *trouble) {
    if (ml_command_end(pending)) {
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
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_command_call *pending = ml_command_begin(connection, call, request->version);
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
    ml_engine_dump(engine, MEMLOG_SERVICE_DUMP_REASON_MANUAL, on_upload_dump, pending);
}

const struct memlog_host_host_handlers ml_engine_command_handlers = {
    .ps = on_ps,
    .dump = on_dump,
    .control = ml_command_on_control,
    .join = on_join,
    .snapshot = on_snapshot,
    .upload = on_upload};
