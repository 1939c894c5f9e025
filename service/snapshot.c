#include "service/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "service/session_internal.h"

/* ---- giving back */

static void free_text(struct ml_text *text) {
    union {
        const char *borrowed;
        char *owned;
    } bytes = {.borrowed = text->bytes};
    free(bytes.owned);
}

static void free_process(struct ml_snapshot_process *process) {
    free_text(&process->trouble);
    free_text(&process->name);
    free_text(&process->exe_path);
    for (uint32_t i = 0; i < process->command_line_count; i++) {
        free_text(&process->command_line[i]);
    }
    free(process->command_line);
    for (uint32_t i = 0; i < process->modules_count; i++) {
        free_text(&process->modules[i].path);
        union {
            const uint8_t *borrowed;
            uint8_t *owned;
        } build_id = {.borrowed = process->modules[i].build_id};
        free(build_id.owned);
    }
    free(process->modules);
    for (uint32_t i = 0; i < process->strings_count; i++) {
        free_text(&process->strings[i]);
    }
    free(process->strings);
    free(process->nodes);
    free(process->cells);
    ml_host_view_free(process->view);
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
    for (uint32_t i = 0; i < take_snapshot->gaps_count; i++) {
        free_text(&take_snapshot->gaps[i].reason);
    }
    free(take_snapshot->gaps);
    for (uint32_t i = 0; i < take_snapshot->not_profiled_count; i++) {
        free_text(&take_snapshot->not_profiled[i].reason);
        free_text(&take_snapshot->not_profiled[i].path);
    }
    free(take_snapshot->not_profiled);
    free_text(&take_snapshot->program);
    free_text(&take_snapshot->service_trouble);
    free_text(&take_snapshot->sandbox_missing);
    free(take_snapshot);
}

/* ---- copying */

static bool copy_bytes(const void *bytes, uint32_t count, struct ml_text *out_text) {
    char *copy = malloc((size_t)count + 1);
    if (copy == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(copy, bytes, count);
    }
    copy[count] = 0;
    *out_text = (struct ml_text){.bytes = copy, .count_bytes = count};
    return true;
}

static bool copy_string(const char *text, struct ml_text *out_text) {
    const char *known = text != NULL ? text : "";
    return copy_bytes(known, (uint32_t)strlen(known), out_text);
}

/* Room for `count` things, one at least; NULL when there is no memory. */
static void *array_of(size_t count, size_t size) {
    return calloc(count > 0 ? count : 1, size);
}

static bool copy_description(const struct ml_client *client, struct ml_snapshot_process *process) {
    if (!copy_string(client->name, &process->name) ||
        !copy_string(ml_client_figures(client).trouble, &process->trouble) ||
        !copy_string(client->executable, &process->exe_path)) {
        return false;
    }
    process->command_line = array_of(client->command_line_count, sizeof(struct ml_text));
    if (process->command_line == NULL) {
        return false;
    }
    for (size_t i = 0; i < client->command_line_count; i++) {
        if (!copy_string(client->command_line[i], &process->command_line[i])) {
            return false;
        }
        process->command_line_count++;
    }
    return true;
}

static bool copy_modules(const struct ml_client *client, struct ml_snapshot_process *process) {
    const struct ml_stack_store *store = &client->stacks;
    process->modules = array_of(store->modules_end, sizeof(*process->modules));
    if (process->modules == NULL) {
        return false;
    }
    for (uint32_t id = 1; id < store->modules_end; id++) {
        const struct ml_stored_module *module = store->modules[id];
        if (module == NULL) {
            continue;
        }
        struct ml_snapshot_module *copy = &process->modules[process->modules_count++];
        uint8_t *build_id = array_of(module->build_id_bytes, 1);
        copy->build_id = build_id;
        if (build_id == NULL ||
            !copy_bytes(module->bytes + module->build_id_bytes, module->path_bytes, &copy->path)) {
            return false;
        }
        memcpy(build_id, module->bytes, module->build_id_bytes);
        copy->id = id;
        copy->start = module->start;
        copy->end = module->end;
        copy->bias = module->bias;
        copy->build_id_bytes = module->build_id_bytes;
    }
    return true;
}

/* strings[0] is "": what an undefined id gets. places[id] is the index of a defined one. */
static bool copy_strings(
    const struct ml_client *client, struct ml_snapshot_process *process, uint32_t *places
) {
    const struct ml_stack_store *store = &client->stacks;
    process->strings = array_of((size_t)store->strings_end + 1, sizeof(*process->strings));
    if (process->strings == NULL || !copy_string("", &process->strings[0])) {
        return false;
    }
    process->strings_count = 1;
    for (uint32_t id = 1; id < store->strings_end; id++) {
        const struct ml_stored_string *string = store->strings[id];
        if (string == NULL) {
            continue;
        }
        struct ml_text *copy = &process->strings[process->strings_count];
        if (!copy_bytes(string->bytes, string->count_bytes, copy)) {
            return false;
        }
        places[id] = process->strings_count++;
    }
    return true;
}

static bool has_module(const struct ml_stack_store *store, uint32_t id) {
    return id < store->modules_end && store->modules[id] != NULL;
}

static struct ml_snapshot_node copy_node(
    const struct ml_stack_store *store,
    uint32_t id,
    const struct ml_stack_node *node,
    const uint32_t *places
) {
    struct ml_snapshot_node copy = {.id = id, .frame = ML_FRAME_BROKEN};
    if (node == NULL || !node->defined) {
        return copy; /* referred to and never defined: its chunk was lost */
    }
    copy.parent = node->parent;
    copy.frame = node->frame;
    if (node->frame == ML_FRAME_ADDRESS) {
        copy.address = node->address;
        copy.module = has_module(store, node->link) ? node->link : 0;
    } else if (node->link < store->strings_end) {
        copy.string = places[node->link];
    }
    return copy;
}

static uint32_t node_of(const struct ml_cell *cell) {
    return ml_cell_node(cell->key);
}

/* One behind the largest id that is defined or referred to. */
static uint32_t ids_end(const struct ml_client *client) {
    uint32_t end = client->stacks.nodes_end;
    for (uint32_t i = 0; i < client->tracker.cells.count; i++) {
        const uint32_t id = node_of(&client->tracker.cells.cells[i]);
        end = id >= end ? id + 1 : end;
    }
    return end;
}

/* One bit an id: the ids that a snapshot needs, from the cells' nodes up to their roots. */
static uint8_t *needed_nodes(const struct ml_client *client, uint32_t end, uint32_t *out_count) {
    const struct ml_stack_store *store = &client->stacks;
    uint8_t *needed = array_of((size_t)end / 8 + 1, 1);
    *out_count = 0;
    if (needed == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < client->tracker.cells.count; i++) {
        uint32_t id = node_of(&client->tracker.cells.cells[i]);
        while (id != 0 && (needed[id / 8] >> id % 8 & 1) == 0) {
            needed[id / 8] |= (uint8_t)(1U << id % 8);
            (*out_count)++;
            const struct ml_stack_node *node = ml_stack_store_node(store, id);
            id = node != NULL && node->defined ? node->parent : 0;
        }
    }
    return needed;
}

static bool copy_nodes(
    const struct ml_client *client, struct ml_snapshot_process *process, const uint32_t *places
) {
    const struct ml_stack_store *store = &client->stacks;
    uint32_t count = 0;
    const uint32_t end = ids_end(client);
    uint8_t *needed = needed_nodes(client, end, &count);
    process->nodes = array_of(count, sizeof(*process->nodes));
    if (needed == NULL || process->nodes == NULL) {
        free(needed);
        return false;
    }
    for (uint32_t id = 1; id < end; id++) {
        if ((needed[id / 8] >> id % 8 & 1) != 0) {
            process->nodes[process->nodes_count++] =
                copy_node(store, id, ml_stack_store_node(store, id), places);
        }
    }
    free(needed);
    return true;
}

static void
copy_errors(const struct ml_tracker *tracker, uint32_t index, struct ml_snapshot_cell *copy) {
    const struct ml_cell_variances *own = ml_variances_of(&tracker->variances, index);
    if (own == NULL) {
        return;
    }
    const struct ml_variance_pair peak = ml_tracker_peak_variance(tracker, index);
    const struct ml_variance_pair tree = ml_tracker_tree_variance(tracker, index);
    copy->own_errors = (struct ml_totals){
        .live_bytes = ml_variance_error(own->live.bytes),
        .live_blocks = ml_variance_error(own->live.blocks),
        .peak_bytes = ml_variance_error(peak.bytes),
        .peak_blocks = ml_variance_error(peak.blocks),
        .total_bytes = ml_variance_error(own->total.bytes),
        .total_blocks = ml_variance_error(own->total.blocks),
    };
    copy->tree_peak_bytes_error = ml_variance_error(tree.bytes);
    copy->tree_peak_blocks_error = ml_variance_error(tree.blocks);
}

static bool copy_cells(const struct ml_client *client, struct ml_snapshot_process *process) {
    const struct ml_tracker *tracker = &client->tracker;
    process->cells = array_of(tracker->cells.count, sizeof(*process->cells));
    if (process->cells == NULL) {
        return false;
    }
    process->cells_count = tracker->cells.count;
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        const struct ml_cell *cell = &tracker->cells.cells[i];
        struct ml_snapshot_cell *copy = &process->cells[i];
        copy->node = node_of(cell);
        copy->heap = (uint16_t)(cell->key >> 24 & (ML_HEAPS_MAX - 1));
        copy->type = (uint16_t)(cell->key >> 32);
        copy->size_class = (uint8_t)(cell->key >> 48);
        copy->own.live_bytes = cell->live_bytes;
        copy->own.live_blocks = cell->live_blocks;
        copy->own.total_bytes = cell->total_bytes;
        copy->own.total_blocks = cell->total_blocks;
        ml_tracker_peak_share(tracker, cell, &copy->own.peak_bytes, &copy->own.peak_blocks);
        ml_tracker_tree_share(tracker, cell, &copy->tree_peak_bytes, &copy->tree_peak_blocks);
        copy->temporary_blocks = cell->temporary_blocks;
        copy_errors(tracker, i, copy);
    }
    return true;
}

static void copy_figures(const struct ml_client *client, struct ml_snapshot_process *process) {
    const struct ml_client_figures figures = ml_client_figures(client);
    const struct ml_client_setup *setup = &client->setup;
    process->id = setup->id;
    process->parent_id = ml_session_where(client->session, setup->parent_id);
    process->folded_processes = figures.folded_processes;
    process->folded_failed = figures.folded_failed;
    process->pid = setup->pid;
    process->parent_pid = setup->parent_pid;
    process->role = client->role;
    process->from_startup = setup->from_startup;
    process->forked = setup->forked;
    process->complete = figures.complete;
    process->footprint_bytes = client->footprint_bytes;
    process->resident_bytes = client->resident_bytes;
    process->sampling = client->sampling;
    process->stream_ended = client->phase != ML_CLIENT_RUNNING || client->lost != ML_OK;
    process->view = ml_host_view_keep(client->view);
    process->start = setup->start;
    if (client->phase != ML_CLIENT_RUNNING) {
        process->state = client->end.state;
        process->exit_code = client->end.exit_code;
        process->signal = client->end.signal;
        process->end = client->end.end;
    }
    process->totals = figures.totals;
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
}

/* An entry that stands for several has none of its own. */
static bool copy_timeline(const struct ml_client *client, struct ml_snapshot_process *process) {
    return client->timeline == NULL || client->fold != NULL ||
           ml_timeline_copy(client->timeline, process);
}

static bool copy_process(const struct ml_client *client, struct ml_snapshot_process *process) {
    copy_figures(client, process);
    uint32_t *places = array_of(client->stacks.strings_end, sizeof(*places));
    const bool copied = places != NULL && copy_description(client, process) &&
                        copy_modules(client, process) && copy_strings(client, process, places) &&
                        copy_nodes(client, process, places) && copy_cells(client, process) &&
                        copy_timeline(client, process);
    free(places);
    return copied;
}

static bool wanted(const struct ml_client *client, const uint32_t *ids, size_t ids_count) {
    for (size_t i = 0; i < ids_count; i++) {
        if (ml_session_where(client->session, ids[i]) == client->setup.id) {
            return true;
        }
    }
    return ids_count == 0;
}

enum ml_status ml_session_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
) {
    ml_session_flush_ended(session);
    ml_session_fold(session, true);
    struct ml_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (snapshot == NULL) {
        return ML_ENV_MEMORY;
    }
    *snapshot = (struct ml_snapshot){
        .run_start = session->start,
        .tree = ml_session_totals(session),
        .tree_peak_ticks = session->tree.peak_ticks,
        .complete = true,
    };
    char guard[ML_TROUBLE_MAX_BYTES];
    ml_session_guard_text(session, guard, sizeof(guard));
    snapshot->processes = array_of(session->clients_count, sizeof(*snapshot->processes));
    bool copied = snapshot->processes != NULL && copy_string(guard, &snapshot->service_trouble) &&
                  ml_timeline_copy_series(&session->timelines.tree, &snapshot->series);
    for (struct ml_client *client = session->first; client != NULL && copied;
         client = client->next) {
        if (wanted(client, ids, ids_count)) {
            struct ml_snapshot_process *process = &snapshot->processes[snapshot->processes_count++];
            copied = copy_process(client, process);
            snapshot->complete = snapshot->complete && process->complete;
        }
    }
    if (!copied) {
        ml_snapshot_free(snapshot);
        return ML_ENV_MEMORY;
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
        nodes[ml_cell_node(cells->cells[i].key)] += cells->cells[i].live_bytes;
    }
    *out_count = nodes != NULL ? count : 0;
    return nodes;
}
