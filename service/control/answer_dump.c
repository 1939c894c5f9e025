#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/control/answer.h"
#include "service/dump/writer.h"
#include "service/ingest/clock.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/session/uncovered.h"
#include "service/snapshot/host_view.h"

enum { TROUBLE_BYTES = 512 };

/* A sink that writes the file and drains the pipes. */
struct draining_sink {
    struct ml_dump_sink file;
    struct ml_readers *readers;
    int error; /* errno of the write that failed */
};

/* The snapshot is a copy, so reading on does not change it. */
static void drain(void *context) {
    struct draining_sink *sink = context;
    ml_readers_drain(sink->readers);
}

/* While the snapshot is copied nothing may be applied. */
static void empty(void *context) {
    ml_readers_empty(context);
}

static enum ml_status write_and_drain(void *context, const uint8_t *bytes, size_t count_bytes) {
    struct draining_sink *sink = context;
    const enum ml_status status = sink->file.write(sink->file.context, bytes, count_bytes);
    if (status != ML_OK) {
        sink->error = errno;
        return status;
    }
    drain(sink);
    return ML_OK;
}

/* Mark the clients that were not read in time. Returns how many. */
static uint32_t mark_unread(struct ml_snapshot *snapshot, const struct ml_answer_scene *scene) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        struct ml_snapshot_process *process = &snapshot->processes[i];
        if (!ml_readers_client_known(scene->readers, process->id, scene->target_ticks)) {
            process->complete = false;
            snapshot->complete = false;
            count++;
        }
    }
    return count;
}

/* Only of the process that the trigger names something earlier is told, and only in a whole dump
 * something of the tree's peak. */
static void drop_unasked(struct ml_snapshot *snapshot) {
    const struct memlog_service_dump_order *order = &snapshot->order;
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        struct ml_snapshot_process *process = &snapshot->processes[i];
        if (!order->has_trigger || order->trigger.id != process->id ||
            process->earlier_view == process->view) {
            ml_host_view_free(process->earlier_view);
            process->earlier_view = NULL;
        }
        if (order->content != MEMLOG_SERVICE_DUMP_CONTENT_EVERYTHING) {
            ml_host_view_free(process->tree_view);
            process->tree_view = NULL;
        }
    }
}

/* What triggers' later dumps are compared with. */
static void note_dumped(const struct ml_answer_scene *scene, const struct ml_snapshot *snapshot) {
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        struct ml_client *client = ml_session_find(scene->session, process->id);
        if (client != NULL && process->view != NULL) {
            ml_client_note_dumped(client, process->view);
        }
    }
}

/* Run-times' own names of their code, from the files that came with the request. */
static void name_code(
    struct ml_session *session, const struct ml_snapshot *snapshot, const struct ml_rest *rest
) {
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        struct ml_client *client = ml_session_find(session, snapshot->processes[i].id);
        if (client != NULL) {
            ml_client_name_code(client, rest);
        }
    }
}

/* Take the snapshot, and empty the pipes meanwhile. Clients that were not read up to the moment of
 * its beginning are marked. */
static enum ml_status take_snapshot(
    const struct ml_answer_scene *scene,
    const struct memlog_service_dump_order *order,
    struct ml_snapshot **out_snapshot,
    uint32_t *out_unread
) {
    const struct ml_rest rest = {.take = empty, .context = scene->readers};
    struct ml_snapshot *snapshot = NULL;
    enum ml_status status =
        ml_session_begin_snapshot(scene->session, order->ids.items, order->ids.count, &snapshot);
    if (status != ML_OK) {
        return status;
    }
    snapshot->order = *order;
    drop_unasked(snapshot);
    snapshot->sandbox_missing = ml_string_of(scene->sandbox_missing);
    /* What they inherited is in the profile, and what became of it is not. */
    snapshot->complete = snapshot->complete && order->lost_forks == 0;
    *out_unread = mark_unread(snapshot, scene);
    name_code(scene->session, snapshot, &rest);
    status = ml_session_copy_tables(scene->session, snapshot, &rest);
    if (status != ML_OK) {
        ml_snapshot_free(snapshot);
        return status;
    }
    *out_snapshot = snapshot;
    return ML_OK;
}

enum ml_status ml_answer_dump(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct memlog_service_dump_request *request
) {
    char trouble[TROUBLE_BYTES] = "";
    uint64_t written_bytes = 0;
    bool complete = false;
    struct ml_snapshot *snapshot = NULL;
    ml_session_note_time(scene->session, ml_clock_monotonic_ns(), true);
    uint32_t unread = 0;
    enum ml_status status = take_snapshot(scene, &request->order, &snapshot, &unread);
    if (status == ML_OK) {
        (void)!ml_snapshot_uncover(snapshot); /* without memory the line is missing */
        struct draining_sink draining = {
            .file = ml_dump_sink_over(&request->file), .readers = scene->readers};
        const struct ml_dump_sink sink = {
            .write = write_and_drain, .rest = drain, .context = &draining};
        status = ml_dump_write(snapshot, &sink, &written_bytes);
        complete = status == ML_OK && snapshot->complete;
        if (status == ML_OK && request->order.content == MEMLOG_SERVICE_DUMP_CONTENT_EVERYTHING) {
            note_dumped(scene, snapshot);
        }
        ml_snapshot_free(snapshot);
        if (status == ML_ENV_SYSTEM && draining.error != 0) {
            (void)snprintf(
                trouble, sizeof(trouble), "cannot write the dump: %s", strerror(draining.error)
            );
        } else if (unread > 0) {
            (void
            )snprintf(trouble, sizeof(trouble), "%u processes could not be read in time", unread);
        } else if (request->order.lost_forks > 0) {
            (void)snprintf(
                trouble,
                sizeof(trouble),
                "%" PRIu64 " forked %s could not be recorded",
                request->order.lost_forks,
                request->order.lost_forks == 1 ? "child" : "children"
            );
        }
    }
    if (status != ML_OK && trouble[0] == '\0') {
        (void
        )snprintf(trouble, sizeof(trouble), "cannot write the dump: %s", ml_status_text(status));
    }
    const struct memlog_service_dump_reply reply = {
        .complete = complete,
        .written_bytes = written_bytes,
        .trouble = ml_string_of(trouble),
        .whole = status == ML_OK};
    return memlog_service_dump_answer(call, &reply);
}
