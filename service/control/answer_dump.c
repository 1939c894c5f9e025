#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/control/answer.h"
#include "service/control/timestamp.h"
#include "service/dump/writer.h"
#include "service/ingest/clock.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/session/uncovered.h"

enum { TROUBLE_BYTES = 512 };

/* The request's parts in the snapshot's shape: one block of memory behind this head. */
struct ml_dump_request {
    int file_fd;
    enum memlog_service_dump_reason reason;
    enum ml_snapshot_content content;
    struct ml_timestamp now;
    struct ml_string program;
    uint32_t *ids;
    uint32_t ids_count;
    struct ml_snapshot_gap *gaps;
    uint32_t gaps_count;
    struct ml_snapshot_not_profiled *not_profiled;
    uint32_t not_profiled_count;
    struct ml_snapshot_unrecorded *unrecorded;
    uint32_t unrecorded_count;
    struct ml_string list_source;
    uint64_t list_blind_ns, list_missed, lost_forks;
    struct ml_snapshot_trigger trigger;
};

/* Bytes of a request's strings, each with a NUL. Lists and lengths are bounded by the contract and
 * came in one message: the sum fits. */
static size_t text_bytes(const struct memlog_service_dump_order *order) {
    size_t bytes = (size_t)order->program.count_bytes + order->list_source.count_bytes + 2;
    if (order->has_trigger) {
        bytes += (size_t)order->trigger.reason.count_bytes + 1;
    }
    for (uint32_t i = 0; i < order->gaps.count; i++) {
        bytes += (size_t)order->gaps.items[i].reason.count_bytes + 1;
    }
    for (uint32_t i = 0; i < order->not_profiled.count; i++) {
        bytes += (size_t)order->not_profiled.items[i].reason.count_bytes + 1;
        bytes += (size_t)order->not_profiled.items[i].path.count_bytes + 1;
    }
    for (uint32_t i = 0; i < order->unrecorded.count; i++) {
        const struct memlog_service_unrecorded *one = &order->unrecorded.items[i];
        bytes += (size_t)one->name.count_bytes + one->command_line.count_bytes +
                 one->executable.count_bytes + one->reason.count_bytes + 4;
    }
    return bytes;
}

static struct ml_string copy_text(char **at, struct ml_string text) {
    const struct ml_string copy = {.data = *at, .count_bytes = text.count_bytes};
    if (text.count_bytes > 0) {
        memcpy(*at, text.data, text.count_bytes);
    }
    (*at)[text.count_bytes] = '\0';
    *at += (size_t)text.count_bytes + 1;
    return copy;
}

static void copy_unrecorded(
    char **at, const struct memlog_service_unrecorded *from, struct ml_snapshot_unrecorded *out_one
) {
    const struct ml_string line = {
        .data = (const char *)from->command_line.data,
        .count_bytes = from->command_line.count_bytes};
    *out_one = (struct ml_snapshot_unrecorded){
        .id = from->id,
        .parent_id = from->parent_id,
        .pid = from->pid,
        .parent_pid = from->parent_pid,
        .role = from->role,
        .state = from->state,
        .exit_code = from->exit_code,
        .signal = from->signal,
        .forked = from->forked,
        .idle = from->idle,
        .start = ml_timestamp_of(&from->start),
        .end = ml_timestamp_of(&from->end),
        .footprint_bytes = from->footprint_bytes,
        .resident_bytes = from->resident_bytes,
        .folded_processes = from->folded_processes,
        .folded_failed = from->folded_failed,
        .name = copy_text(at, from->name),
        .command_line = copy_text(at, line),
        .exe_path = copy_text(at, from->executable),
        .reason = copy_text(at, from->reason),
    };
}

struct ml_dump_request *
ml_dump_request_new(const struct memlog_service_dump_order *order, int take_file_fd) {
    const size_t gaps_bytes = order->gaps.count * sizeof(struct ml_snapshot_gap);
    const size_t others_bytes = order->not_profiled.count * sizeof(struct ml_snapshot_not_profiled);
    const size_t ids_bytes = order->ids.count * sizeof(uint32_t);
    const size_t unrecorded_bytes = order->unrecorded.count * sizeof(struct ml_snapshot_unrecorded);
    struct ml_dump_request *request = calloc(
        1,
        sizeof(*request) + gaps_bytes + others_bytes + unrecorded_bytes + ids_bytes +
            text_bytes(order)
    );
    if (request == NULL) {
        (void)close(take_file_fd);
        return NULL;
    }
    request->file_fd = take_file_fd;
    request->reason = order->reason;
    request->content = (enum ml_snapshot_content)order->content;
    request->now = ml_timestamp_of(&order->now);
    request->gaps_count = order->gaps.count;
    request->not_profiled_count = order->not_profiled.count;
    request->ids_count = order->ids.count;
    request->unrecorded_count = order->unrecorded.count;
    request->list_blind_ns = order->list_blind_ns;
    request->list_missed = order->list_missed;
    request->lost_forks = order->lost_forks;
    /* Widest alignment first: 8, 8, 8, 4, 1. */
    request->gaps = (struct ml_snapshot_gap *)(request + 1);
    request->not_profiled = (struct ml_snapshot_not_profiled *)(request->gaps + order->gaps.count);
    request->unrecorded =
        (struct ml_snapshot_unrecorded *)(request->not_profiled + order->not_profiled.count);
    request->ids = (uint32_t *)(request->unrecorded + order->unrecorded.count);
    char *at = (char *)(request->ids + order->ids.count);
    if (ids_bytes > 0) {
        memcpy(request->ids, order->ids.items, ids_bytes);
    }
    request->program = copy_text(&at, order->program);
    request->list_source = copy_text(&at, order->list_source);
    for (uint32_t i = 0; i < order->unrecorded.count; i++) {
        copy_unrecorded(&at, &order->unrecorded.items[i], &request->unrecorded[i]);
    }
    if (order->has_trigger) {
        request->trigger = (struct ml_snapshot_trigger
        ){.is_set = true,
          .kind = order->trigger.kind,
          .id = order->trigger.id,
          .node = order->trigger.node,
          .node_bytes = order->trigger.node_bytes,
          .checked_ns = order->trigger.checked_ns,
          .reason = copy_text(&at, order->trigger.reason)};
    }
    for (uint32_t i = 0; i < order->gaps.count; i++) {
        const struct memlog_service_gap *gap = &order->gaps.items[i];
        request->gaps[i] = (struct ml_snapshot_gap
        ){.id = gap->id,
          .from = ml_timestamp_of(&gap->from),
          .to = ml_timestamp_of(&gap->to),
          .reason = copy_text(&at, gap->reason)};
    }
    for (uint32_t i = 0; i < order->not_profiled.count; i++) {
        const struct memlog_service_not_profiled *other = &order->not_profiled.items[i];
        request->not_profiled[i].pid = other->pid;
        request->not_profiled[i].parent_pid = other->parent_pid;
        request->not_profiled[i].has_other_profiler = other->has_other_profiler;
        request->not_profiled[i].is_listed = other->listed;
        request->not_profiled[i].reason = copy_text(&at, other->reason);
        request->not_profiled[i].path = copy_text(&at, other->path);
    }
    return request;
}

void ml_dump_request_free(struct ml_dump_request *take_request) {
    if (take_request != NULL) {
        (void)close(take_request->file_fd);
        free(take_request);
    }
}

/* A file's sink that lets the clients' pipes run on. */
struct draining_sink {
    struct ml_dump_sink file;
    struct ml_readers *readers;
    int error; /* errno of the write that failed */
};

/* The snapshot is a copy: reading on does not touch it. */
static void drain(void *context) {
    struct draining_sink *sink = context;
    ml_readers_drain(sink->readers);
}

/* While it becomes one, nothing may change. */
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

/* What the order, not the session, knows; borrowed by the snapshot until take_back. */
static void lend(
    struct ml_snapshot *snapshot,
    const struct ml_answer_scene *scene,
    const struct ml_dump_request *request
) {
    snapshot->run_start = scene->run_start;
    snapshot->now = request->now;
    snapshot->reason = request->reason;
    snapshot->program = request->program;
    snapshot->trigger = request->trigger;
    snapshot->gaps = request->gaps;
    snapshot->gaps_count = request->gaps_count;
    snapshot->not_profiled = request->not_profiled;
    snapshot->not_profiled_count = request->not_profiled_count;
    snapshot->unrecorded = request->unrecorded;
    snapshot->unrecorded_count = request->unrecorded_count;
    snapshot->list_source = request->list_source;
    snapshot->list_blind_ns = request->list_blind_ns;
    snapshot->list_missed = request->list_missed;
    snapshot->lost_forks = request->lost_forks;
    /* What they inherited is in the profile, and what became of it is not. */
    snapshot->complete = snapshot->complete && request->lost_forks == 0;
    snapshot->sandbox_missing = (struct ml_string
    ){.data = scene->sandbox_missing, .count_bytes = (uint32_t)strlen(scene->sandbox_missing)};
}

static void take_back(struct ml_snapshot *snapshot) {
    snapshot->program = (struct ml_string){0};
    snapshot->trigger = (struct ml_snapshot_trigger){0};
    snapshot->gaps = NULL;
    snapshot->gaps_count = 0;
    snapshot->not_profiled = NULL;
    snapshot->not_profiled_count = 0;
    snapshot->unrecorded = NULL;
    snapshot->unrecorded_count = 0;
    snapshot->list_source = (struct ml_string){0};
    snapshot->sandbox_missing = (struct ml_string){0};
}

/* Mark who was not read in time; answers how many. */
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

/* All of it, pipes being emptied meanwhile; who was not read up to the moment when it was begun is
 * marked. */
static enum ml_status take_snapshot(
    const struct ml_answer_scene *scene,
    const struct ml_dump_request *request,
    struct ml_snapshot **out_snapshot,
    uint32_t *out_unread
) {
    const struct ml_rest rest = {.take = empty, .context = scene->readers};
    struct ml_snapshot *snapshot = NULL;
    enum ml_status status =
        ml_session_begin_snapshot(scene->session, request->ids, request->ids_count, &snapshot);
    if (status != ML_OK) {
        return status;
    }
    snapshot->content = request->content;
    *out_unread = mark_unread(snapshot, scene);
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
    const struct ml_dump_request *request
) {
    char trouble[TROUBLE_BYTES] = "";
    uint64_t written_bytes = 0;
    bool complete = false;
    struct ml_snapshot *snapshot = NULL;
    ml_session_note_time(scene->session, ml_clock_monotonic_ns(), true);
    uint32_t unread = 0;
    enum ml_status status = take_snapshot(scene, request, &snapshot, &unread);
    if (status == ML_OK) {
        lend(snapshot, scene, request);
        (void)!ml_snapshot_uncover(snapshot); /* without memory it is not said */
        struct draining_sink draining = {
            .file = ml_dump_sink_over(&request->file_fd), .readers = scene->readers};
        const struct ml_dump_sink sink = {
            .write = write_and_drain, .rest = drain, .context = &draining};
        status = ml_dump_write(snapshot, &sink, &written_bytes);
        take_back(snapshot);
        complete = status == ML_OK && snapshot->complete;
        ml_snapshot_free(snapshot);
        if (status == ML_ENV_SYSTEM && draining.error != 0) {
            (void)snprintf(
                trouble, sizeof(trouble), "cannot write the dump: %s", strerror(draining.error)
            );
        } else if (unread > 0) {
            (void
            )snprintf(trouble, sizeof(trouble), "%u processes could not be read in time", unread);
        } else if (request->lost_forks > 0) {
            (void)snprintf(
                trouble,
                sizeof(trouble),
                "%" PRIu64 " forked %s could not be recorded",
                request->lost_forks,
                request->lost_forks == 1 ? "child" : "children"
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
