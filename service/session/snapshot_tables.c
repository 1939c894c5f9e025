/* Copies a snapshot's tables a piece at a time: cells, the stacks that they need, names. Between
 * two pieces the caller reads pipes. The session applies nothing then (ml_session_begin_snapshot),
 * so no cell changes, but definitions come. A definition that comes while its process is copied is
 * left out. So nodes are copied before modules and after strings, and a node whose parent was not
 * foreseen is broken. */
#include <stdlib.h>
#include <string.h>

#include "service/session/internal.h"
#include "service/session/snapshot_build.h"
#include "service/session/snapshot_internal.h"
#include "service/snapshot/host_view.h"

/* Things that are copied or looked at between two rests: some 100 us. */
enum { STEPS_A_REST = 1024 };

struct copying {
    const struct ml_client *client;
    enum memlog_service_dump_content content;
    struct ml_snapshot_process *process;
    uint32_t *places; /* by string id: its index in process->strings */
    uint32_t places_end;
    uint32_t found_first; /* the first found name's index in process->strings */
    const struct ml_rest *rest;
    uint32_t steps, steps_a_rest;
};

static void step(struct copying *copying) {
    const struct ml_rest *rest = copying->rest;
    if (++copying->steps >= copying->steps_a_rest) {
        copying->steps = 0;
        if (rest != NULL) {
            rest->take(rest->context);
        }
    }
}

static bool copy_description(const struct ml_client *client, struct ml_snapshot_process *process) {
    if (!ml_snapshot_copy_string(client->name, &process->name) ||
        !ml_snapshot_copy_string(client->executable, &process->exe_path)) {
        return false;
    }
    process->command_line = ml_snapshot_array(client->command_line_count, sizeof(struct ml_string));
    if (process->command_line == NULL) {
        return false;
    }
    for (size_t i = 0; i < client->command_line_count; i++) {
        if (!ml_snapshot_copy_string(client->command_line[i], &process->command_line[i])) {
            return false;
        }
        process->command_line_count++;
    }
    return true;
}

static bool copy_modules(struct copying *copying) {
    const struct ml_stack_store *store = &copying->client->stacks;
    struct ml_snapshot_process *process = copying->process;
    const uint32_t end = store->modules_end;
    process->modules = ml_snapshot_array(end, sizeof(*process->modules));
    if (process->modules == NULL) {
        return false;
    }
    for (uint32_t id = 1; id < end; id++) {
        step(copying);
        const struct ml_stored_module *module = store->modules[id];
        if (module == NULL) {
            continue;
        }
        struct ml_snapshot_module *copy = &process->modules[process->modules_count++];
        if (!ml_snapshot_copy_bytes(module->bytes, module->build_id_bytes, &copy->build_id) ||
            !ml_snapshot_copy_bytes(
                module->bytes + module->build_id_bytes, module->path_bytes, &copy->path
            )) {
            return false;
        }
        copy->id = id;
        copy->start = module->start;
        copy->end = module->end;
        copy->bias = module->bias;
        copy->code_address = module->code_address;
        copy->code_offset = module->code_offset;
    }
    return true;
}

/* strings[0] is "", for undefined ids. places[id] is the index of a defined one. */
static bool copy_strings(struct copying *copying) {
    const struct ml_stack_store *store = &copying->client->stacks;
    struct ml_snapshot_process *process = copying->process;
    const uint32_t end = store->strings_end;
    copying->places_end = end;
    copying->places = ml_snapshot_array(end, sizeof(*copying->places));
    process->strings =
        ml_snapshot_array((size_t)end + store->found_count + 1, sizeof(*process->strings));
    if (copying->places == NULL || process->strings == NULL ||
        !ml_snapshot_copy_string("", &process->strings[0])) {
        return false;
    }
    process->strings_count = 1;
    for (uint32_t id = 1; id < end; id++) {
        step(copying);
        const struct ml_stored_string *string = store->strings[id];
        if (string == NULL) {
            continue;
        }
        struct ml_string *copy = &process->strings[process->strings_count];
        if (!ml_snapshot_copy_bytes(string->bytes, string->count_bytes, copy)) {
            return false;
        }
        copying->places[id] = process->strings_count++;
    }
    copying->found_first = process->strings_count;
    for (uint32_t i = 0; i < store->found_count; i++) {
        const struct ml_stored_string *name = store->found[i];
        struct ml_string *copy = &process->strings[process->strings_count];
        step(copying);
        if (!ml_snapshot_copy_bytes(name->bytes, name->count_bytes, copy)) {
            return false;
        }
        process->strings_count++;
    }
    return true;
}

static uint32_t
name_at(const struct copying *copying, const struct ml_stored_names *names, uint32_t id) {
    const uint32_t string = ml_stored_name(names, id);
    return string < copying->places_end ? copying->places[string] : 0;
}

/* Those that have a name, or blocks. */
static bool copy_heaps(struct copying *copying) {
    const struct ml_stack_store *store = &copying->client->stacks;
    const struct ml_heap_sums *sums = copying->client->tracker.heaps;
    struct ml_snapshot_process *process = copying->process;
    if (sums == NULL && store->heaps.end == 0) {
        return true;
    }
    process->heaps = ml_snapshot_array(ML_HEAPS_MAX, sizeof(*process->heaps));
    for (uint32_t id = 1; process->heaps != NULL && id < ML_HEAPS_MAX; id++) {
        const struct ml_snapshot_heap heap = {
            .id = id,
            .string = name_at(copying, &store->heaps, id),
            .own = sums != NULL ? sums[id].own : (struct ml_totals){0},
            .unknown_frees = sums != NULL && sums[id].unknown_frees > sums[id].unsure_frees
                                 ? sums[id].unknown_frees - sums[id].unsure_frees
                                 : 0};
        if (heap.string != 0 || heap.own.total_blocks != 0 || heap.unknown_frees != 0) {
            process->heaps[process->heaps_count++] = heap;
        }
    }
    return process->heaps != NULL;
}

static bool copy_types(struct copying *copying) {
    const struct ml_stack_store *store = &copying->client->stacks;
    struct ml_snapshot_process *process = copying->process;
    if (store->types.end == 0) {
        return true;
    }
    process->types = ml_snapshot_array(store->types.end, sizeof(*process->types));
    for (uint32_t id = 1; process->types != NULL && id < store->types.end; id++) {
        const uint32_t string = name_at(copying, &store->types, id);
        step(copying);
        if (string != 0) {
            process->types[process->types_count++] =
                (struct ml_snapshot_type){.id = id, .string = string};
        }
    }
    return process->types != NULL;
}

static void rest_now(void *context) {
    struct copying *copying = context;
    copying->steps = copying->steps_a_rest;
    step(copying);
}

/* Those of a client that was cut down to its largest stacks are of other cells. */
static bool copy_words(struct copying *copying) {
    const struct ml_first_words *words = &copying->client->first_words;
    struct ml_snapshot_process *process = copying->process;
    if (!words->facts.were_read || copying->client->relieved || copying->client->fold != NULL) {
        return true;
    }
    process->words_facts = words->facts;
    if (words->sums == NULL) {
        const struct ml_words_rest rest = {.take = rest_now, .context = copying};
        return ml_first_words_sum(
            words, &copying->client->tracker, rest, &process->words, &process->words_count
        );
    }
    process->words = ml_snapshot_array(words->sums_count, sizeof(*process->words));
    if (process->words != NULL && words->sums_count > 0) {
        memcpy(process->words, words->sums, words->sums_count * sizeof(*process->words));
        process->words_count = words->sums_count;
    }
    return process->words != NULL;
}

static bool has_module(const struct ml_stack_store *store, uint32_t id) {
    return id < store->modules_end && store->modules[id] != NULL;
}

static bool is_needed(const uint8_t *needed, uint32_t id) {
    return (needed[id / 8] >> id % 8 & 1) != 0;
}

static struct ml_snapshot_node
copy_node(const struct copying *copying, uint32_t id, const uint8_t *needed) {
    const struct ml_stack_store *store = &copying->client->stacks;
    const struct ml_stored_node *node = ml_stack_store_node(store, id);
    struct ml_snapshot_node copy = {.id = id, .frame = ML_FRAME_BROKEN};
    /* Its definition was lost with its chunk, or came after the nodes were counted. */
    if (node == NULL || !node->defined || (node->parent != 0 && !is_needed(needed, node->parent))) {
        return copy;
    }
    copy.parent = node->parent;
    copy.frame = node->frame;
    if (node->frame == ML_FRAME_ADDRESS) {
        copy.address = node->address;
        copy.module = has_module(store, node->link) ? node->link : 0;
    } else if (node->is_found) {
        copy.string = copying->found_first + node->link;
    } else if (node->link < copying->places_end) {
        copy.string = copying->places[node->link];
    }
    return copy;
}

static uint32_t node_of(const struct ml_cell *cell) {
    return ml_cell_node(cell->key);
}

/* One behind the largest id that is defined or referred to. */
static uint32_t ids_end(struct copying *copying) {
    const struct ml_cells *cells = &copying->client->tracker.cells;
    uint32_t end = copying->client->stacks.nodes_end;
    for (uint32_t i = 0; i < cells->count; i++) {
        const uint32_t id = node_of(&cells->cells[i]);
        end = id >= end ? id + 1 : end;
        step(copying);
    }
    return end;
}

/* The ids that the snapshot needs, a bit each, up to their roots: of the nodes of its cells, or of
 * those of its series alone, which have cells too. */
static uint8_t *needed_nodes(struct copying *copying, uint32_t end, uint32_t *out_count) {
    const struct ml_stack_store *store = &copying->client->stacks;
    const struct ml_cells *cells = &copying->client->tracker.cells;
    const struct ml_snapshot_process *process = copying->process;
    const bool has_cells = copying->content != MEMLOG_SERVICE_DUMP_CONTENT_SERIES;
    const uint32_t holdings_end = cells->count + process->holdings_count;
    const uint32_t wanted =
        has_cells ? holdings_end + process->tree_holdings_count : process->series_count;
    uint8_t *needed = ml_snapshot_array((size_t)end / 8 + 1, 1);
    *out_count = 0;
    if (needed == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t id = !has_cells         ? process->series[i].node
                      : i < cells->count ? node_of(&cells->cells[i])
                      : i < holdings_end ? process->holdings[i - cells->count].node
                                         : process->tree_holdings[i - holdings_end].node;
        while (id != 0 && !is_needed(needed, id)) {
            needed[id / 8] |= (uint8_t)(1U << id % 8);
            (*out_count)++;
            const struct ml_stored_node *node = ml_stack_store_node(store, id);
            id = node != NULL && node->defined ? node->parent : 0;
            step(copying);
        }
    }
    return needed;
}

/* A holding is of a moment before, so its node and its name have been defined, or never will be. */
static bool copy_holdings(
    struct copying *copying,
    uint32_t nodes_end,
    const struct ml_host_view *view,
    struct ml_snapshot_holding **out_holdings,
    uint32_t *out_count
) {
    if (view == NULL || copying->content == MEMLOG_SERVICE_DUMP_CONTENT_SERIES) {
        return true;
    }
    const struct ml_holdings *holdings = &view->holdings;
    struct ml_snapshot_holding *copies = ml_snapshot_array(holdings->count, sizeof(*copies));
    if (copies == NULL) {
        return false;
    }
    *out_holdings = copies;
    *out_count = holdings->count;
    for (uint32_t i = 0; i < holdings->count; i++) {
        const struct ml_holding *holding = &holdings->items[i];
        copies[i] = (struct ml_snapshot_holding
        ){.region = holding->region,
          .kind = holding->kind,
          .node = holding->node < nodes_end ? holding->node : 0,
          .string = holding->name < copying->places_end ? copying->places[holding->name] : 0,
          .mapped_bytes = holding->mapped_bytes,
          .private_bytes = holding->bytes.private,
          .shared_bytes = holding->bytes.shared};
        step(copying);
    }
    return true;
}

static bool copy_all_holdings(struct copying *copying, uint32_t nodes_end) {
    struct ml_snapshot_process *process = copying->process;
    const struct ml_host_view *tree = process->tree_view;
    return copy_holdings(
               copying, nodes_end, process->view, &process->holdings, &process->holdings_count
           ) &&
           copy_holdings(
               copying,
               nodes_end,
               tree != process->view ? tree : NULL,
               &process->tree_holdings,
               &process->tree_holdings_count
           );
}

static bool copy_nodes(struct copying *copying) {
    struct ml_snapshot_process *process = copying->process;
    uint32_t count = 0;
    const uint32_t end = ids_end(copying);
    if (!copy_all_holdings(copying, end)) {
        return false;
    }
    uint8_t *needed = needed_nodes(copying, end, &count);
    process->nodes = ml_snapshot_array(count, sizeof(*process->nodes));
    if (needed == NULL || process->nodes == NULL) {
        free(needed);
        return false;
    }
    for (uint32_t id = 1; id < end; id++) {
        if (is_needed(needed, id)) {
            process->nodes[process->nodes_count++] = copy_node(copying, id, needed);
            step(copying);
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

/* What the cells hold of the pages of a view. The tables of a client that was cut down to its
 * largest stacks have other cells. NULL: that is not known. */
static const struct ml_overlay *
laid_of(const struct copying *copying, const struct ml_host_view *view) {
    return view != NULL && view->overlay.has_cells && !copying->client->relieved ? &view->overlay
                                                                                 : NULL;
}

static void copy_cells_memory(struct copying *copying) {
    struct ml_snapshot_process *process = copying->process;
    const struct ml_overlay *overlay = laid_of(copying, process->view);
    for (uint32_t i = 0; overlay != NULL && i < overlay->cells_count; i++) {
        const struct ml_cell_memory *memory = &overlay->cells[i];
        if (memory->cell < process->cells_count) {
            struct ml_snapshot_cell *copy = &process->cells[memory->cell];
            copy->resident_private_bytes = memory->bytes.private;
            copy->resident_shared_bytes = memory->bytes.shared;
            copy->alone_bytes = memory->alone_bytes;
            copy->waste_bytes = memory->waste_bytes;
        }
        step(copying);
    }
    process->cells_were_laid = overlay != NULL;
}

static void copy_cells_tree_memory(struct copying *copying) {
    struct ml_snapshot_process *process = copying->process;
    const struct ml_overlay *overlay = laid_of(copying, process->tree_view);
    process->tree_cells_were_laid = overlay != NULL;
    if (process->tree_view == process->view) {
        return; /* the same bytes */
    }
    for (uint32_t i = 0; overlay != NULL && i < overlay->cells_count; i++) {
        const struct ml_cell_memory *memory = &overlay->cells[i];
        if (memory->cell < process->cells_count) {
            struct ml_snapshot_cell *copy = &process->cells[memory->cell];
            copy->tree_private_bytes = memory->bytes.private;
            copy->tree_shared_bytes = memory->bytes.shared;
        }
        step(copying);
    }
}

static bool copy_cells(struct copying *copying) {
    const struct ml_tracker *tracker = &copying->client->tracker;
    struct ml_snapshot_process *process = copying->process;
    process->cells = ml_snapshot_array(tracker->cells.count, sizeof(*process->cells));
    if (process->cells == NULL) {
        return false;
    }
    process->cells_count = tracker->cells.count;
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        const struct ml_cell *cell = &tracker->cells.cells[i];
        struct ml_snapshot_cell *copy = &process->cells[i];
        copy->node = node_of(cell);
        copy->heap = (uint16_t)ml_cell_heap(cell->key);
        copy->type = (uint16_t)ml_cell_type(cell->key);
        copy->size_class = (uint8_t)(cell->key >> ML_CELL_SIZE_CLASS_SHIFT);
        copy->own.live_bytes = cell->live_bytes;
        copy->own.live_blocks = cell->live_blocks;
        copy->own.total_bytes = cell->total_bytes;
        copy->own.total_blocks = cell->total_blocks;
        const struct ml_amount peak = ml_tracker_peak_share(tracker, cell);
        const struct ml_amount tree = ml_tracker_tree_share(tracker, cell);
        copy->own.peak_bytes = peak.bytes;
        copy->own.peak_blocks = peak.blocks;
        copy->tree_peak_bytes = tree.bytes;
        copy->tree_peak_blocks = tree.blocks;
        copy->temporary_blocks = cell->temporary_blocks;
        copy_errors(tracker, i, copy);
        step(copying);
    }
    copy_cells_memory(copying);
    copy_cells_tree_memory(copying);
    return true;
}

/* An entry that stands for several has no series. */
static bool copy_timeline(const struct ml_client *client, struct ml_snapshot_process *process) {
    return client->timeline == NULL || client->fold != NULL ||
           ml_timeline_copy(client->timeline, process);
}

bool ml_snapshot_copy_tables(
    const struct ml_client *client,
    enum memlog_service_dump_content content,
    struct ml_snapshot_process *process,
    const struct ml_rest *rest
) {
    const bool has_own_pace = rest != NULL && rest->steps > 0;
    struct copying copying = {
        .client = client,
        .content = content,
        .process = process,
        .rest = rest,
        .steps_a_rest = has_own_pace ? rest->steps : STEPS_A_REST};
    const bool copied =
        copy_description(client, process) && copy_strings(&copying) && copy_heaps(&copying) &&
        copy_types(&copying) &&
        (content == MEMLOG_SERVICE_DUMP_CONTENT_PROFILE || copy_timeline(client, process)) &&
        copy_nodes(&copying) && copy_modules(&copying) &&
        (content == MEMLOG_SERVICE_DUMP_CONTENT_SERIES ||
         (copy_cells(&copying) && copy_words(&copying)));
    free(copying.places);
    if (rest != NULL) {
        rest->take(rest->context);
    }
    return copied;
}
