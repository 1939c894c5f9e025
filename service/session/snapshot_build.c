#include "service/snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "service/session/figures.h"
#include "service/session/fold.h"
#include "service/session/guard.h"
#include "service/session/internal.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/session/snapshot_internal.h"

/* ---- giving back */

static void free_text(const struct ml_string *text) {
    free((void *)(uintptr_t)text->data); /* a copy of ml_snapshot_copy_bytes */
}

static void free_texts(struct ml_string *texts, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        free_text(&texts[i]);
    }
    free(texts);
}

static void free_process(struct ml_snapshot_process *process) {
    free_text(&process->trouble);
    free_text(&process->name);
    free_text(&process->exe_path);
    free_texts(process->command_line, process->command_line_count);
    for (uint32_t i = 0; i < process->modules_count; i++) {
        free_text(&process->modules[i].build_id);
        free_text(&process->modules[i].path);
    }
    free(process->modules);
    free_texts(process->strings, process->strings_count);
    free(process->nodes);
    free(process->cells);
    free(process->heaps);
    free(process->types);
    free(process->words);
    free(process->holdings);
    free(process->tree_holdings);
    free_text(&process->allocator);
    free_text(&process->unseen);
    ml_host_view_free(process->view);
    ml_host_view_free(process->earlier_view);
    ml_host_view_free(process->tree_view);
    for (uint32_t i = 0; i < process->series_count; i++) {
        free(process->series[i].points);
    }
    free(process->series);
}

void ml_snapshot_free(struct ml_snapshot *take_snapshot) {
    if (take_snapshot == NULL) {
        return;
    }
    for (uint32_t i = 0; i < take_snapshot->processes_count; i++) {
        free_process(&take_snapshot->processes[i]);
    }
    free(take_snapshot->processes);
    free(take_snapshot->series.points);
    free_text(&take_snapshot->uncovered);
    free_text(&take_snapshot->service_trouble);
    free(take_snapshot);
}

/* ---- copying */

bool ml_snapshot_copy_bytes(const void *bytes, uint32_t count, struct ml_string *out_text) {
    char *copy = malloc((size_t)count + 1);
    if (copy == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(copy, bytes, count);
    }
    copy[count] = 0;
    *out_text = (struct ml_string){.data = copy, .count_bytes = count};
    return true;
}

bool ml_snapshot_copy_string(const char *text, struct ml_string *out_text) {
    const char *known = text != NULL ? text : "";
    return ml_snapshot_copy_bytes(known, (uint32_t)strlen(known), out_text);
}

void *ml_snapshot_array(size_t count, size_t size) {
    return calloc(count > 0 ? count : 1, size);
}

/* The figures that change while tables are copied. */
static bool copy_figures(const struct ml_client *client, struct ml_snapshot_process *process) {
    const struct ml_client_figures figures = ml_client_figures(client);
    const struct ml_client_setup *setup = &client->setup;
    process->id = setup->id;
    process->parent_id = ml_session_where(client->session, setup->parent_id);
    process->folded_processes = figures.folded_processes;
    process->folded_failed = figures.folded_failed;
    process->pid = setup->pid;
    process->parent_pid = setup->parent_pid;
    process->role = client->role;
    process->from_startup = ml_client_is_from_startup(client);
    process->forked = setup->forked;
    process->complete = figures.complete;
    process->footprint_bytes = client->footprint_bytes;
    process->resident_bytes = client->resident_bytes;
    process->overhead = client->overhead;
    process->sampling = client->sampling;
    process->stream_ended = client->phase != ML_CLIENT_RUNNING || client->lost != ML_OK;
    process->view =
        ml_host_view_keep(client->phase == ML_CLIENT_RUNNING ? client->view : client->largest_view);
    process->earlier_view =
        client->phase == ML_CLIENT_RUNNING ? ml_host_view_keep(client->dumped_view) : NULL;
    process->tree_view = ml_host_view_keep(client->tree_view);
    process->start = setup->start;
    if (client->phase != ML_CLIENT_RUNNING) {
        process->state = client->end.state;
        process->exit_code = client->end.exit_code;
        process->signal = client->end.signal;
        process->end = client->end.end;
    }
    process->totals = figures.totals;
    process->left_tree = figures.left_tree;
    process->held_at_tree_peak_bytes = figures.held_at_tree_peak_bytes;
    process->held_at_tree_peak_blocks = figures.held_at_tree_peak_blocks;
    process->peak_ticks = client->tracker.peak_ticks;
    process->inherited_bytes = figures.inherited_bytes;
    process->inherited_blocks = figures.inherited_blocks;
    process->accounting = figures.accounting;
    process->events = figures.events;
    process->lost_events = figures.lost_events;
    process->unknown_frees = figures.unknown_frees;
    process->late_events = figures.late_events;
    process->truncated_stacks = figures.truncated_stacks;
    process->broken_stacks = figures.broken_stacks;
    process->unwind_checked =
        client->fold != NULL ? client->fold->unwind_checked : client->staging.header.unwind_checked;
    process->unwind_differed = client->fold != NULL ? client->fold->unwind_differed
                                                    : client->staging.header.unwind_differed;
    process->coverage_was_read = figures.coverage.was_read;
    process->coverage_heap_bytes = figures.coverage.heap_bytes;
    process->coverage_private_bytes = figures.coverage.private_bytes;
    process->coverage_mapped_bytes = figures.coverage.mapped_bytes;
    process->coverage_files_bytes = figures.coverage.files_bytes;
    process->coverage_shared_bytes = figures.coverage.shared_bytes;
    process->hooked_functions = figures.coverage.hooked_functions;
    return ml_snapshot_copy_string(figures.trouble, &process->trouble) &&
           ml_snapshot_copy_string(figures.coverage.allocator, &process->allocator) &&
           ml_snapshot_copy_string(figures.coverage.unseen, &process->unseen);
}

static bool wanted(const struct ml_client *client, const uint32_t *ids, size_t ids_count) {
    for (size_t i = 0; i < ids_count; i++) {
        if (ml_session_where(client->session, ids[i]) == client->setup.id) {
            return true;
        }
    }
    return ids_count == 0;
}

void ml_session_hold(struct ml_session *session) {
    session->held = true;
}

/* Events that came meanwhile and cannot wait are applied. */
void ml_session_release(struct ml_session *session) {
    session->held = false;
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        ml_client_digest(client);
    }
}

/* Everything but the tables. False when there is no memory. */
static bool begin(
    struct ml_session *session, const uint32_t *ids, size_t ids_count, struct ml_snapshot *snapshot
) {
    char guard[ML_TROUBLE_MAX_BYTES];
    ml_session_guard_text(session, guard, sizeof(guard));
    snapshot->processes = ml_snapshot_array(session->clients_count, sizeof(*snapshot->processes));
    bool copied = snapshot->processes != NULL &&
                  ml_snapshot_copy_string(guard, &snapshot->service_trouble) &&
                  ml_timeline_copy_series(&session->timelines.tree, &snapshot->series);
    for (struct ml_client *client = session->first; client != NULL && copied;
         client = client->next) {
        if (wanted(client, ids, ids_count)) {
            struct ml_snapshot_process *process = &snapshot->processes[snapshot->processes_count++];
            copied = copy_figures(client, process);
            snapshot->complete = snapshot->complete && process->complete;
        }
    }
    return copied;
}

enum ml_status ml_session_begin_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
) {
    ml_session_flush_ended(session);
    ml_session_settle_tree_views(session);
    ml_session_fold(session, true);
    struct ml_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (snapshot == NULL) {
        return ML_ENV_MEMORY;
    }
    const struct ml_amount left = ml_session_left(session);
    *snapshot = (struct ml_snapshot){
        .run_start = session->start,
        .tree = ml_session_totals(session),
        .left_bytes = left.bytes,
        .left_blocks = left.blocks,
        .tree_peak_ticks = session->tree.peak_ticks,
        .tree_views_dropped = session->tree_views.dropped,
        .complete = true,
    };
    if (!begin(session, ids, ids_count, snapshot)) {
        ml_snapshot_free(snapshot);
        return ML_ENV_MEMORY;
    }
    ml_session_hold(session);
    *out_snapshot = snapshot;
    return ML_OK;
}

enum ml_status ml_session_copy_tables(
    struct ml_session *session, struct ml_snapshot *snapshot, const struct ml_rest *rest
) {
    bool copied = true;
    for (uint32_t i = 0; i < snapshot->processes_count && copied; i++) {
        struct ml_snapshot_process *process = &snapshot->processes[i];
        const struct ml_client *client = ml_session_find(session, process->id);
        copied = ml_snapshot_copy_tables(client, snapshot->order.content, process, rest);
    }
    ml_session_release(session);
    return copied ? ML_OK : ML_ENV_MEMORY;
}

enum ml_status ml_session_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
) {
    struct ml_snapshot *snapshot = NULL;
    enum ml_status status = ml_session_begin_snapshot(session, ids, ids_count, &snapshot);
    if (status != ML_OK) {
        return status;
    }
    status = ml_session_copy_tables(session, snapshot, NULL);
    if (status != ML_OK) {
        ml_snapshot_free(snapshot);
        return status;
    }
    *out_snapshot = snapshot;
    return ML_OK;
}

/* ---- for the triggers */

struct ml_client_face ml_client_face(const struct ml_client *client) {
    return (struct ml_client_face
    ){.id = client->setup.id,
      .pid = client->setup.pid,
      .role = client->role,
      .name = client->name != NULL ? client->name : "",
      .running = client->phase == ML_CLIENT_RUNNING};
}

uint64_t *ml_client_live_by_node(const struct ml_client *client, uint32_t *out_count) {
    const struct ml_cells *cells = &client->tracker.cells;
    uint32_t count = 1;
    for (uint32_t i = 0; i < cells->count; i++) {
        const uint32_t node = ml_cell_node(cells->cells[i].key);
        count = node >= count ? node + 1 : count;
    }
    uint64_t *nodes = calloc(count, sizeof(*nodes));
    for (uint32_t i = 0; nodes != NULL && i < cells->count; i++) {
        if (ml_cell_heap(cells->cells[i].key) == 0) {
            nodes[ml_cell_node(cells->cells[i].key)] += cells->cells[i].live_bytes;
        }
    }
    *out_count = nodes != NULL ? count : 0;
    return nodes;
}
