#include "service/session/fold_tables.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"

/* ---- the entry's own nodes */

static uint64_t hash_of(const struct ml_stored_node *node) {
    uint64_t hash = node->address ^ (uint64_t)node->parent << 32 ^ (uint64_t)node->link << 8 ^
                    (uint64_t)node->frame << 56;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
    hash *= UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

static bool is_same(const struct ml_stored_node *a, const struct ml_stored_node *b) {
    return a->address == b->address && a->parent == b->parent && a->link == b->link &&
           a->frame == b->frame && a->is_found == b->is_found;
}

/* The place of such a node in the index, or the empty one where it belongs. */
static uint32_t *place_of(const struct ml_fold_tables *tables, const struct ml_stored_node *node) {
    const uint32_t mask = tables->index_capacity - 1;
    uint32_t at = (uint32_t)hash_of(node) & mask;
    while (tables->index[at] != 0 &&
           !is_same(ml_stack_store_node(tables->stacks, tables->index[at]), node)) {
        at = (at + 1) & mask;
    }
    return &tables->index[at];
}

/* Build an index of so many places, of all defined nodes. */
static enum ml_status build_index(struct ml_fold_tables *tables, uint32_t capacity) {
    struct ml_budget *budget = tables->stacks->budget;
    uint32_t *index = ml_budget_new(budget, (size_t)capacity * sizeof(*index));
    if (index == NULL) {
        return ML_ENV_MEMORY;
    }
    ml_budget_free(budget, tables->index, (size_t)tables->index_capacity * sizeof(*index));
    tables->index = index;
    tables->index_capacity = capacity;
    tables->indexed = 0;
    for (uint32_t id = 1; id < tables->stacks->nodes_end; id++) {
        const struct ml_stored_node *node = ml_stack_store_node(tables->stacks, id);
        if (node != NULL && node->defined) {
            uint32_t *place = place_of(tables, node);
            if (*place == 0) {
                *place = id;
                tables->indexed++;
            }
        }
    }
    return ML_OK;
}

/* The node of the entry with this content, made if it is new. 0: there are too many. */
static enum ml_status
node_like(struct ml_fold_tables *tables, const struct ml_stored_node *like, uint32_t *out_id) {
    /* Half full at most. */
    if (tables->indexed >= tables->index_capacity / 2) {
        const enum ml_status status = build_index(tables, tables->index_capacity * 2);
        if (status != ML_OK) {
            return status;
        }
    }
    uint32_t *place = place_of(tables, like);
    *out_id = *place;
    if (*place != 0 || tables->next_node >= ML_FOLD_NODES_MAX) {
        return ML_OK;
    }
    const uint32_t id = tables->next_node;
    const struct ml_event event = {
        .kind = ML_EVENT_NODE,
        .node = {
            .id = id,
            .parent = like->parent,
            .frame = (enum ml_frame_kind)like->frame,
            .address = like->address,
            .module = like->frame == ML_FRAME_ADDRESS ? like->link : 0,
            .string_id = like->frame == ML_FRAME_ADDRESS ? 0 : like->link}};
    const enum ml_status status = ml_stack_store_define(tables->stacks, &event);
    if (status == ML_OK) {
        *place = id;
        tables->indexed++;
        tables->next_node++;
        *out_id = id;
    }
    return status;
}

/* ---- modules and strings */

/* One behind the last id of a table of pointers that is used. */
static uint32_t ids_used(const void *table, uint32_t end) {
    void *const *const entries = table;
    while (end > 1 && entries[end - 1] == NULL) {
        end--;
    }
    return end > 1 ? end : 1;
}

/* A module to find. Its path may be that of another process's main program. */
struct wanted {
    const struct ml_stored_module *module;
    const uint8_t *path;
    uint32_t path_bytes;
};

static bool is_module(const struct ml_stored_module *known, const struct wanted *wanted) {
    const struct ml_stored_module *module = wanted->module;
    return known != NULL && known->end - known->start == module->end - module->start &&
           known->build_id_bytes == module->build_id_bytes &&
           known->path_bytes == wanted->path_bytes &&
           memcmp(known->bytes, module->bytes, module->build_id_bytes) == 0 &&
           memcmp(known->bytes + known->build_id_bytes, wanted->path, wanted->path_bytes) == 0;
}

/* The module of the entry of the same file, made if it is new. 0: there are too many. */
static enum ml_status module_like(
    struct ml_fold_tables *tables,
    const struct ml_stored_module *module,
    const char *main_path,
    uint32_t *out_id
) {
    struct wanted wanted = {module, module->bytes + module->build_id_bytes, module->path_bytes};
    if (module->path_bytes == 0 && main_path != NULL) {
        wanted.path = (const uint8_t *)main_path;
        wanted.path_bytes = (uint32_t)strlen(main_path);
    }
    const uint32_t end = ids_used(tables->stacks->modules, tables->stacks->modules_end);
    for (uint32_t id = 1; id < end; id++) {
        if (is_module(tables->stacks->modules[id], &wanted)) {
            *out_id = id;
            return ML_OK;
        }
    }
    *out_id = 0;
    if (end >= ML_MODULES_MAX) {
        return ML_OK;
    }
    const struct ml_event event = {
        .kind = ML_EVENT_MODULE,
        .module = {
            .id = end,
            .start = module->start,
            .end = module->end,
            .bias = module->bias,
            .code_address = module->code_address,
            .code_offset = module->code_offset,
            .build_id = module->bytes,
            .build_id_bytes = module->build_id_bytes,
            .path = wanted.path,
            .path_bytes = wanted.path_bytes}};
    const enum ml_status status = ml_stack_store_define(tables->stacks, &event);
    *out_id = status == ML_OK ? end : 0;
    return status;
}

static bool
is_string(const struct ml_stack_store *stacks, uint32_t id, const struct ml_stored_string *string) {
    const struct ml_stored_string *known = id < stacks->strings_end ? stacks->strings[id] : NULL;
    return known != NULL && known->count_bytes == string->count_bytes &&
           memcmp(known->bytes, string->bytes, string->count_bytes) == 0;
}

/* `own_id`: the process's, and mostly the entry's too. */
static enum ml_status string_like(
    struct ml_fold_tables *tables,
    const struct ml_stored_string *string,
    uint32_t own_id,
    uint32_t *out_id
) {
    const uint32_t end = ids_used(tables->stacks->strings, tables->stacks->strings_end);
    uint32_t id = is_string(tables->stacks, own_id, string) ? own_id : 1;
    while (id < end && !is_string(tables->stacks, id, string)) {
        id++;
    }
    if (id < end) {
        *out_id = id;
        return ML_OK;
    }
    *out_id = 0;
    if (end >= ML_STRINGS_MAX) {
        return ML_OK;
    }
    const struct ml_event event = {
        .kind = ML_EVENT_STRING,
        .name = {.id = end, .bytes = string->bytes, .bytes_count = string->count_bytes}};
    const enum ml_status status = ml_stack_store_define(tables->stacks, &event);
    *out_id = status == ML_OK ? end : 0;
    return status;
}

/* One behind the last node that is defined or referred to. */
static uint32_t nodes_used(const struct ml_stack_store *stacks, const struct ml_tracker *tracker) {
    uint32_t end = stacks->nodes_end > 0 ? stacks->nodes_end : 1;
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        const uint32_t id = ml_cell_node(tracker->cells.cells[i].key);
        end = id >= end ? id + 1 : end;
    }
    return end;
}

/* ---- another process's stacks in the entry's terms */

/* The ids of a process in the entry. 0: none, or there was no room. */
struct map {
    const struct ml_fold_choice *choice;
    uint32_t *nodes, *modules, *strings, *found, *cells;
    uint32_t *heaps, *types;
    uint8_t *needed; /* one byte a node */
    uint32_t nodes_end;
};

static void free_map(struct map *map) {
    free(map->nodes);
    free(map->modules);
    free(map->strings);
    free(map->found);
    free(map->cells);
    free(map->heaps);
    free(map->types);
    free(map->needed);
}

static bool
make_map(struct map *map, const struct ml_stack_store *stacks, const struct ml_tracker *tracker) {
    map->nodes_end = nodes_used(stacks, tracker);
    map->nodes = calloc((size_t)map->nodes_end + 1, sizeof(*map->nodes));
    map->needed = calloc((size_t)map->nodes_end + 1, 1);
    map->modules = calloc((size_t)stacks->modules_end + 1, sizeof(*map->modules));
    map->strings = calloc((size_t)stacks->strings_end + 1, sizeof(*map->strings));
    map->found = calloc((size_t)stacks->found_count + 1, sizeof(*map->found));
    map->cells = calloc((size_t)tracker->cells.count + 1, sizeof(*map->cells));
    map->heaps = calloc((size_t)ML_HEAPS_MAX, sizeof(*map->heaps));
    map->types = calloc((size_t)stacks->types.end + 1, sizeof(*map->types));
    return map->nodes != NULL && map->needed != NULL && map->modules != NULL &&
           map->strings != NULL && map->found != NULL && map->cells != NULL && map->heaps != NULL &&
           map->types != NULL;
}

static bool keeps_stack(const struct map *map, uint32_t cell) {
    return map->choice == NULL || map->choice->kept[cell] != 0;
}

static void mark_needed(
    struct map *map, const struct ml_stack_store *stacks, const struct ml_tracker *tracker
) {
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        uint32_t id = keeps_stack(map, i) ? ml_cell_node(tracker->cells.cells[i].key) : 0;
        while (id != 0 && map->needed[id] == 0) {
            map->needed[id] = 1;
            const struct ml_stored_node *node = ml_stack_store_node(stacks, id);
            id = node != NULL && node->defined ? node->parent : 0;
        }
    }
}

/* The same frame under the parent's node in the entry. An undefined node becomes a broken frame. */
static enum ml_status translate(
    struct ml_fold_tables *tables,
    const struct ml_stack_store *stacks,
    struct map *map,
    const struct ml_stored_node *node,
    const char *main_path,
    struct ml_stored_node *out_node
) {
    *out_node = (struct ml_stored_node){.frame = ML_FRAME_BROKEN, .defined = true};
    if (node == NULL || !node->defined) {
        return ML_OK;
    }
    enum ml_status status = ML_OK;
    out_node->parent = map->nodes[node->parent];
    out_node->frame = node->frame;
    if (node->frame != ML_FRAME_ADDRESS) {
        const struct ml_stored_string *string = ml_stack_store_string_of(stacks, node);
        uint32_t *known = node->is_found ? map->found : map->strings;
        if (string != NULL) {
            if (known[node->link] == 0) {
                const uint32_t own_id = node->is_found ? 0 : node->link;
                status = string_like(tables, string, own_id, &known[node->link]);
            }
            out_node->link = known[node->link];
        }
        return status;
    }
    out_node->address = node->address;
    const uint32_t module = node->link;
    if (module < stacks->modules_end && stacks->modules[module] != NULL) {
        if (map->modules[module] == 0) {
            status = module_like(tables, stacks->modules[module], main_path, &map->modules[module]);
        }
        out_node->link = map->modules[module];
        if (out_node->link != 0) {
            out_node->address += (uint64_t)tables->stacks->modules[out_node->link]->bias -
                                 (uint64_t)stacks->modules[module]->bias;
        }
    }
    return status;
}

/* Parents have smaller ids than their children, so one pass is enough. */
static enum ml_status map_nodes(
    struct ml_fold_tables *tables,
    const struct ml_stack_store *stacks,
    struct map *map,
    const char *main_path
) {
    enum ml_status status = ML_OK;
    for (uint32_t id = 1; id < map->nodes_end && status == ML_OK; id++) {
        if (map->needed[id] == 0) {
            continue;
        }
        struct ml_stored_node like;
        status = translate(tables, stacks, map, ml_stack_store_node(stacks, id), main_path, &like);
        if (status == ML_OK) {
            status = node_like(tables, &like, &map->nodes[id]);
        }
        if (map->nodes[id] == 0) {
            map->nodes[id] = like.parent; /* there is no room for it */
        }
    }
    return status;
}

/* ---- heaps and types, by their names */

/* An id of the entry with that name, made if it is new. */
static enum ml_status name_like(
    struct ml_fold_tables *tables,
    struct ml_stored_names *names,
    enum ml_event_kind kind,
    uint32_t own_id,
    uint32_t string,
    uint32_t *out_id
) {
    const uint32_t limit = kind == ML_EVENT_HEAP ? ML_HEAPS_MAX : ML_TYPES_MAX;
    uint32_t id = ml_stored_name(names, own_id) == string ? own_id : 1;
    while (id < names->end && names->strings[id] != 0 && names->strings[id] != string) {
        id++;
    }
    *out_id = id < limit ? id : limit - 1; /* beyond the last one: that one has what is too many */
    if (id >= limit || ml_stored_name(names, id) == string) {
        return ML_OK;
    }
    const struct ml_event event = {.kind = kind, .name = {.id = id, .string_id = string}};
    return ml_stack_store_define(tables->stacks, &event);
}

/* The entry's id for a process's; 0: none. One without a name has the empty one's. */
static enum ml_status map_name(
    struct ml_fold_tables *tables,
    const struct ml_stack_store *stacks,
    enum ml_event_kind kind,
    uint32_t id,
    uint32_t *out_id
) {
    static const struct ml_stored_string nameless = {.count_bytes = 0};
    const bool is_heap = kind == ML_EVENT_HEAP;
    const uint32_t told = ml_stored_name(is_heap ? &stacks->heaps : &stacks->types, id);
    const struct ml_stored_string *string =
        told != 0 && told < stacks->strings_end ? stacks->strings[told] : NULL;
    uint32_t own = 0;
    enum ml_status status = ML_OK;
    if (id == 0 || *out_id != 0) {
        return ML_OK;
    }
    status = string_like(tables, string != NULL ? string : &nameless, told, &own);
    return status != ML_OK ? status
                           : name_like(
                                 tables,
                                 is_heap ? &tables->stacks->heaps : &tables->stacks->types,
                                 kind,
                                 id,
                                 own,
                                 out_id
                             );
}

static enum ml_status map_names(
    struct ml_fold_tables *tables,
    const struct ml_stack_store *stacks,
    struct map *map,
    uint64_t cell_key
) {
    const unsigned heap = ml_cell_heap(cell_key);
    const unsigned type = ml_cell_type(cell_key);
    enum ml_status status = map_name(tables, stacks, ML_EVENT_HEAP, heap, &map->heaps[heap]);
    if (status == ML_OK && heap != 0) {
        status = ml_tracker_reserve_heaps(tables->tracker);
    }
    if (status == ML_OK && type < stacks->types.end) {
        status = map_name(tables, stacks, ML_EVENT_TYPE, type, &map->types[type]);
    }
    return status;
}

/* Make each cell's cell in the entry, still without figures. */
static enum ml_status map_cells(
    struct ml_fold_tables *tables,
    const struct ml_stack_store *stacks,
    const struct ml_tracker *tracker,
    struct map *map
) {
    struct ml_tracker *own = tables->tracker;
    enum ml_status status = ML_OK;
    for (uint32_t i = 0; i < tracker->cells.count && status == ML_OK; i++) {
        const uint64_t key = tracker->cells.cells[i].key;
        const unsigned size_class = (unsigned)(key >> ML_CELL_SIZE_CLASS_SHIFT);
        const unsigned type = ml_cell_type(key);
        status = map_names(tables, stacks, map, key);
        if (status != ML_OK) {
            break;
        }
        const unsigned heap = map->heaps[ml_cell_heap(key)];
        const uint64_t own_key = keeps_stack(map, i)
                                     ? ml_cell_key(
                                           map->nodes[ml_cell_node(key)],
                                           heap,
                                           type < stacks->types.end ? map->types[type] : 0,
                                           size_class
                                       )
                                     : ml_cell_key(map->choice->others_node, heap, 0, size_class);
        status = ml_cells_make(&own->cells, own_key, ml_cells_hash(own_key), &map->cells[i]);
    }
    if (status == ML_OK && tracker->variances.cells != NULL) {
        status = ml_variances_reserve(&own->variances, own->cells.count);
    }
    return status;
}

/* ---- figures */

/* The tree has had a new peak: at that moment the entry's processes held nothing. */
static void begin_epoch(struct ml_tracker *own) {
    if (own->tree_epoch != own->tree->epoch) {
        own->tree_epoch = own->tree->epoch;
        own->tree_mark = ++own->mark;
        own->held = (struct ml_amount){0};
    }
}

static void add_variances(
    struct ml_tracker *own, uint32_t own_index, const struct ml_tracker *tracker, uint32_t index
) {
    struct ml_cell_variances *sum = ml_variances_of(&own->variances, own_index);
    const struct ml_cell_variances *one = ml_variances_of(&tracker->variances, index);
    if (sum != NULL && own->cells.cells[own_index].mark < own->tree_mark) {
        sum->tree = (struct ml_variance_pair){0, 0};
    }
    if (sum != NULL && one != NULL) {
        ml_variance_add(&sum->live, one->live);
        ml_variance_add(&sum->total, one->total);
        ml_variance_add(&sum->peak, ml_tracker_peak_variance(tracker, index));
        ml_variance_add(&sum->tree, ml_tracker_tree_variance(tracker, index));
    }
}

/* Live sums are below 2^48 each, and a run has at most 2^16 processes: the sums do not wrap. */
static void add_cell(
    struct ml_tracker *own, uint32_t own_index, const struct ml_tracker *tracker, uint32_t index
) {
    add_variances(own, own_index, tracker, index);
    struct ml_cell *sum = &own->cells.cells[own_index];
    const struct ml_cell *one = &tracker->cells.cells[index];
    const struct ml_amount peak = ml_tracker_peak_share(tracker, one);
    const struct ml_amount tree = ml_tracker_tree_share(tracker, one);
    if (sum->mark < own->tree_mark) {
        sum->tree_bytes = 0;
        sum->tree_blocks = 0;
    }
    sum->tree_bytes += tree.bytes;
    sum->tree_blocks += tree.blocks;
    sum->peak_bytes += peak.bytes;
    sum->peak_blocks += peak.blocks;
    sum->live_bytes += one->live_bytes;
    sum->live_blocks += one->live_blocks;
    ml_add_saturating(&sum->total_bytes, one->total_bytes);
    ml_add_saturating(&sum->total_blocks, one->total_blocks);
    ml_add_saturating(&sum->temporary_blocks, one->temporary_blocks);
    sum->mark = own->mark;
}

static void add_sums(struct ml_totals *sum, const struct ml_totals *one) {
    sum->live_bytes += one->live_bytes;
    sum->live_blocks += one->live_blocks;
    sum->peak_bytes += one->peak_bytes;
    sum->peak_blocks += one->peak_blocks;
    ml_add_saturating(&sum->total_bytes, one->total_bytes);
    ml_add_saturating(&sum->total_blocks, one->total_blocks);
}

static void
add_totals(struct ml_tracker *own, const struct ml_tracker *tracker, const struct map *map) {
    add_sums(&own->totals, &tracker->totals);
    for (uint32_t id = 1; tracker->heaps != NULL && id < ML_HEAPS_MAX; id++) {
        if (map->heaps[id] != 0) {
            struct ml_heap_sums *sum = &own->heaps[map->heaps[id]];
            add_sums(&sum->own, &tracker->heaps[id].own);
            ml_add_saturating(&sum->unknown_frees, tracker->heaps[id].unknown_frees);
            ml_add_saturating(&sum->unsure_frees, tracker->heaps[id].unsure_frees);
        }
    }
    const struct ml_amount held = ml_tracker_tree_held(tracker);
    own->held.bytes += held.bytes;
    own->held.blocks += held.blocks;
}

/* ---- the whole */

/* Make every cell hold its own shares, which were kept only when a cell changed. */
static void settle_shares(struct ml_tracker *tracker) {
    tracker->held = ml_tracker_tree_held(tracker);
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        struct ml_cell *cell = &tracker->cells.cells[i];
        const struct ml_amount peak_share = ml_tracker_peak_share(tracker, cell);
        const struct ml_amount tree_share = ml_tracker_tree_share(tracker, cell);
        struct ml_cell_variances *own = ml_variances_of(&tracker->variances, i);
        if (own != NULL) {
            const struct ml_variance_pair peak = ml_tracker_peak_variance(tracker, i);
            const struct ml_variance_pair tree = ml_tracker_tree_variance(tracker, i);
            own->peak = peak;
            own->tree = tree;
        }
        cell->tree_bytes = tree_share.bytes;
        cell->tree_blocks = tree_share.blocks;
        cell->peak_bytes = peak_share.bytes;
        cell->peak_blocks = peak_share.blocks;
    }
    tracker->tree_epoch = tracker->tree->epoch;
    tracker->tree_mark = ++tracker->mark;
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        tracker->cells.cells[i].mark = tracker->mark;
    }
    /* No mark is older than the peak, so each cell's saved peak holds. If the tree has a new peak
     * since the last process was added, this one had left (left_epoch is none of the tree's). */
    tracker->peak_mark = 0;
    for (uint32_t id = 0; tracker->heaps != NULL && id < ML_HEAPS_MAX; id++) {
        tracker->heaps[id].peak_mark = 0;
    }
    tracker->left_epoch = 0;
    tracker->absent_epoch = 0;
}

enum ml_status ml_fold_tables_init(
    struct ml_fold_tables *tables, struct ml_stack_store *stacks, struct ml_tracker *tracker
) {
    *tables = (struct ml_fold_tables
    ){.stacks = stacks, .tracker = tracker, .next_node = nodes_used(stacks, tracker)};
    uint32_t capacity = 64;
    while (capacity / 2 <= stacks->nodes_count) {
        capacity *= 2;
    }
    const enum ml_status status = build_index(tables, capacity);
    if (status == ML_OK) {
        settle_shares(tracker);
    }
    return status;
}

void ml_fold_tables_fini(struct ml_fold_tables *tables) {
    if (tables->index != NULL) {
        ml_budget_free(
            tables->stacks->budget,
            tables->index,
            (size_t)tables->index_capacity * sizeof(*tables->index)
        );
        tables->index = NULL;
    }
}

enum ml_status ml_fold_tables_add(
    struct ml_fold_tables *tables,
    const struct ml_stack_store *stacks,
    const struct ml_tracker *tracker,
    const char *main_path,
    const struct ml_fold_choice *choice
) {
    struct map map = {.choice = choice};
    enum ml_status status = make_map(&map, stacks, tracker) ? ML_OK : ML_ENV_MEMORY;
    if (status == ML_OK) {
        mark_needed(&map, stacks, tracker);
        status = map_nodes(tables, stacks, &map, main_path);
    }
    if (status == ML_OK) {
        status = map_cells(tables, stacks, tracker, &map);
    }
    if (status == ML_OK) {
        begin_epoch(tables->tracker);
        for (uint32_t i = 0; i < tracker->cells.count; i++) {
            add_cell(tables->tracker, map.cells[i], tracker, i);
        }
        add_totals(tables->tracker, tracker, &map);
    }
    free_map(&map);
    return status;
}
