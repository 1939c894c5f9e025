#include "tools/analyzer/memory/rows.h"

#include <stdlib.h>
#include <string.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tools/analyzer/memory/inherited.h"
#include "tools/analyzer/memory/owners.h"

const char *ml_row_allocator_name(enum ml_row_allocator allocator) {
    static const char *const names[ML_ROW_ALLOCATORS] = {
        [ML_ROW_MALLOC] = "malloc",
        [ML_ROW_SLACK] = "slack",
        [ML_ROW_MMAP] = "mmap",
        [ML_ROW_UNHOOKED] = "unhooked"};
    return names[allocator];
}

const char *ml_row_sharing_name(enum ml_row_sharing sharing) {
    static const char *const names[ML_ROW_SHARINGS] = {
        [ML_ROW_PRIVATE] = "private", [ML_ROW_GROUP] = "group", [ML_ROW_OTHERS] = "others"};
    return names[sharing];
}

const char *ml_row_permissions(uint32_t permissions, char out_text[ML_ROW_PERMISSIONS_BYTES]) {
    out_text[0] = permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_READ ? 'r' : '-';
    out_text[1] = permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE ? 'w' : '-';
    out_text[2] = permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE ? 'x' : '-';
    out_text[3] = permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED ? 's' : 'p';
    out_text[4] = '\0';
    return out_text;
}

/* A process while its rows are made. */
struct making {
    struct ml_rows *rows;
    const struct ml_stacks *stacks;
    const struct ml_sharing *sharing;
    const struct ml_profile_process *process;
    const uint32_t *nodes; /* of that process */
    struct ml_ancestors ancestors;
    struct ml_component_figures heap; /* of its live blocks, in all mappings */
    bool is_failed;                   /* no memory */
};

static const struct ml_profile_text no_text = {.bytes = "", .count_bytes = 0};

/* Add a row for what is private, and one for what is shared. */
static void
put(struct making *making,
    struct ml_row row,
    const struct ml_component_figures *figures,
    enum ml_row_sharing sharing) {
    struct ml_rows *rows = making->rows;
    const uint64_t private_proportional =
        figures->shared == 0 || figures->proportional < figures->private ? figures->proportional
                                                                         : figures->private;
    const struct ml_component_figures parts[] = {
        {.private = figures->private,
         .proportional = private_proportional,
         .swapped = figures->swapped},
        {.shared = figures->shared, .proportional = figures->proportional - private_proportional}};

    if (making->is_failed || !ML_GROW(rows->items, rows->capacity, rows->count + 2)) {
        making->is_failed = true;
        return;
    }
    if (parts[0].private > 0 || parts[0].proportional > 0 || parts[0].swapped > 0) {
        row.sharing = ML_ROW_PRIVATE;
        row.figures = parts[0];
        rows->items[rows->count++] = row;
    }
    if (parts[1].shared > 0) {
        row.sharing = sharing;
        row.figures = parts[1];
        rows->items[rows->count++] = row;
    }
}

static enum ml_row_allocator allocator_of(const struct ml_owned *owned) {
    if (ml_component_is_slack(owned->kind)) {
        return ML_ROW_SLACK;
    }
    return owned->holding && owned->holding->kind == ML_HOLDING_MAPPED ? ML_ROW_MMAP
                                                                       : ML_ROW_UNHOOKED;
}

/* Who mapped it: a process, and its stack and name there. */
struct origin {
    const struct ml_profile_process *process;
    uint32_t node;   /* id; 0: no stack */
    uint32_t string; /* 0: none */
};

/* Of this process, else of the one that it has the mapping or its object from. */
static struct origin origin_of(const struct making *making, const struct ml_owned *owned) {
    const struct ml_profile_region *region = &making->process->regions[owned->region];
    const struct ml_profile_region_holding *holding = owned->holding;
    struct origin origin = {.process = making->process};
    const struct ml_sharing_member *first = NULL;

    if (!holding) {
        return origin;
    }
    origin.node = holding->node;
    origin.string = holding->string;
    if (holding->node != 0 || holding->kind != ML_HOLDING_MAPPED) {
        return origin;
    }
    holding = ml_inherited_holding(&making->ancestors, making->process, holding, &origin.process);
    if (holding) {
        origin.node = holding->node;
        origin.string = holding->string;
    } else if (ml_sharing_find(making->sharing, region, &first) > 0 && first->mapper) {
        origin = (struct origin){.process = first->mapper, .node = first->mapper_node};
    }
    return origin;
}

/* The program's own name of a mapping: by the kernel "[anon:NAME]", else by the client. */
static struct ml_profile_text
name_of(const struct ml_profile_region *region, const struct origin *origin) {
    static const char head[] = "[anon:";
    const struct ml_profile_text *name = &region->name;
    const size_t head_bytes = sizeof head - 1;

    if (name->count_bytes > head_bytes + 1 && memcmp(name->bytes, head, head_bytes) == 0) {
        return (struct ml_profile_text
        ){.bytes = name->bytes + head_bytes, .count_bytes = name->count_bytes - head_bytes - 1};
    }
    return origin->string != 0 ? origin->process->strings[origin->string] : no_text;
}

/* The file of a mapping, for .bss that of its module. */
static struct ml_profile_text
file_of(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    if (region->inode != 0) {
        return region->name;
    }
    for (size_t i = 0; i < process->modules_count; i++) {
        const struct ml_profile_module *module = &process->modules[i];
        if (region->start >= module->start && region->start < module->end) {
            return ml_profile_module_path(process, module);
        }
    }
    return no_text;
}

static enum ml_row_sharing
sharing_of(const struct making *making, const struct ml_profile_region *region) {
    const struct ml_sharing_member *first = NULL;

    return ml_sharing_find(making->sharing, region, &first) > 1 ? ML_ROW_GROUP : ML_ROW_OTHERS;
}

/* The nodes of a process. NULL: it is not recorded. */
static const uint32_t *
nodes_of(const struct ml_stacks *stacks, const struct ml_profile_process *process) {
    const bool is_recorded = process->recording == ML_PROFILE_RECORDED;

    return is_recorded ? stacks->merged[process - stacks->profile->processes] : NULL;
}

/* Of one that may be a copy (ml_profile_at_tree_peak). */
static const uint32_t *
own_nodes_of(const struct ml_stacks *stacks, const struct ml_profile_process *process) {
    const struct ml_profile *profile = stacks->profile;
    const struct ml_profile_process *end = profile->processes + profile->processes_count;

    if (process->recording != ML_PROFILE_RECORDED ||
        (process >= profile->processes && process < end)) {
        return nodes_of(stacks, process);
    }
    for (const struct ml_profile_process *one = profile->processes; one < end; one++) {
        if (one->id == process->id) {
            return nodes_of(stacks, one);
        }
    }
    return NULL;
}

/* The number among all of a node of the process. */
static uint32_t
node_of(const struct making *making, const struct ml_profile_process *process, uint32_t id) {
    const uint32_t *nodes =
        process == making->process ? making->nodes : nodes_of(making->stacks, process);
    const size_t at = nodes ? ml_profile_node_at(process, id) : SIZE_MAX;

    return at == SIZE_MAX ? ML_STACKS_NONE : nodes[at];
}

static void take(void *context, const struct ml_owned *owned) {
    struct making *making = context;
    const struct ml_profile_process *process = making->process;
    const struct ml_profile_region *region = &process->regions[owned->region];
    const struct origin origin = origin_of(making, owned);
    const struct ml_row row = {
        .process = process,
        .allocator = allocator_of(owned),
        .kind = owned->kind,
        .permissions = region->permissions,
        .path = region->name,
        .name = name_of(region, &origin),
        .file = ml_component_is_slack(owned->kind) ? no_text : file_of(process, region),
        .type = no_text,
        .node = node_of(making, origin.process, origin.node)};

    if (owned->kind == ML_COMPONENT_HEAP) {
        ml_component_figures_add(&making->heap, &owned->figures);
    } else {
        put(making, row, &owned->figures, sharing_of(making, region));
    }
}

/* What live blocks hold, by their stacks and types. What no stack is known for is a row without
 * one. */
static void put_heap(struct making *making) {
    const struct ml_profile_process *process = making->process;
    struct ml_row row = {
        .process = process,
        .allocator = ML_ROW_MALLOC,
        .kind = ML_COMPONENT_HEAP,
        .permissions =
            MEMLOG_SERVICE_MEMORY_PERMISSION_READ | MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE,
        .path = no_text,
        .name = no_text,
        .file = no_text,
        .type = no_text};
    struct ml_component_figures part;

    for (size_t i = 0; process->cells_were_laid && i < process->cells_count; i++) {
        const struct ml_profile_cell *cell = &process->cells[i];
        part = ml_component_figures_take(
            &making->heap, cell->resident_private_bytes, cell->resident_shared_bytes
        );
        row.node = node_of(making, process, cell->node);
        row.type = ml_profile_type_name(process, cell->type);
        put(making, row, &part, ML_ROW_OTHERS);
    }
    row.node = ML_STACKS_NONE;
    row.type = no_text;
    put(making, row, &making->heap, ML_ROW_OTHERS);
}

static int text_order(struct ml_profile_text a, struct ml_profile_text b) {
    const int order = strcmp(a.bytes, b.bytes);

    return order != 0 ? order : (a.count_bytes > b.count_bytes) - (a.count_bytes < b.count_bytes);
}

/* Rows that no policy tells apart are equal. */
static int row_order(const void *left, const void *right) {
    const struct ml_row *a = left, *b = right;
    const uint32_t numbers[][2] = {
        {a->allocator, b->allocator},
        {a->kind, b->kind},
        {a->sharing, b->sharing},
        {a->permissions, b->permissions},
        {a->node, b->node}};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i][0] != numbers[i][1]) {
            return numbers[i][0] > numbers[i][1] ? 1 : -1;
        }
    }
    int order = text_order(a->path, b->path);
    order = order != 0 ? order : text_order(a->name, b->name);
    order = order != 0 ? order : text_order(a->file, b->file);
    return order != 0 ? order : text_order(a->type, b->type);
}

/* Make one row of equal ones. */
static void merge(struct ml_rows *rows, size_t first) {
    size_t kept = first;

    ML_SORT(rows->items + first, rows->count - first, row_order);
    for (size_t i = first; i < rows->count; i++) {
        if (kept > first && row_order(&rows->items[kept - 1], &rows->items[i]) == 0) {
            ml_component_figures_add(&rows->items[kept - 1].figures, &rows->items[i].figures);
        } else {
            rows->items[kept++] = rows->items[i];
        }
    }
    rows->count = kept;
}

bool ml_rows_add(
    struct ml_rows *rows,
    const struct ml_stacks *stacks,
    const struct ml_sharing *sharing,
    const struct ml_profile_process *process
) {
    struct making making = {
        .rows = rows,
        .stacks = stacks,
        .sharing = sharing,
        .process = process,
        .nodes = own_nodes_of(stacks, process),
        .ancestors = ml_ancestors_of(stacks->profile, process)};
    const struct ml_owner_visitor visitor = {.take = take, .context = &making};
    const size_t first = rows->count;

    for (size_t i = 0; i < process->regions_count; i++) {
        const struct ml_component_figures figures = ml_region_figures(&process->regions[i]);
        ml_component_figures_add(&rows->all, &figures);
    }
    const uint64_t moved = (uint64_t)ml_owners_visit(process, &visitor);
    rows->moved = (int64_t)((uint64_t)rows->moved + moved + process->heap_elsewhere_bytes);
    put_heap(&making);
    merge(rows, first);
    return !making.is_failed;
}

void ml_rows_fini(struct ml_rows *rows) {
    free(rows->items);
    *rows = (struct ml_rows){0};
}
