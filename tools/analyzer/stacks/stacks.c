#include "tools/analyzer/stacks/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/names/script_name.h"
#include "tools/analyzer/progress/progress.h"

/* Note a process that has the file mapped, preferably one that runs. */
static void file_found_in(
    struct ml_code_file *file,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
) {
    if (file->pid == 0 ||
        (!file->is_running && process->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING)) {
        file->pid = process->pid;
        file->pid_start = module->start;
        file->pid_end = module->end;
        file->is_running = process->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING;
    }
}

/* The number of the file, which is added when it is missing. ML_STACKS_NONE: no memory. */
static uint32_t file_intern(
    struct ml_stacks *stacks,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
) {
    struct ml_profile_text path = ml_profile_module_path(process, module);
    uint64_t hash = ml_hash(0, path.bytes, path.count_bytes);
    size_t at = 0;

    hash = ml_hash(hash, module->build_id.bytes, module->build_id.count_bytes);
    for (uint32_t item = ml_index_first(&stacks->files_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&stacks->files_index, hash, &at)) {
        if (ml_profile_text_eq(stacks->files[item].path, path) &&
            ml_profile_text_eq(stacks->files[item].build_id, module->build_id)) {
            file_found_in(&stacks->files[item], process, module);
            return item;
        }
    }
    if (!ML_GROW(stacks->files, stacks->files_capacity, stacks->files_count + 1) ||
        !ml_index_add(&stacks->files_index, hash, (uint32_t)stacks->files_count)) {
        return ML_STACKS_NONE;
    }
    stacks->files[stacks->files_count] = (struct ml_code_file){
        .path = path,
        .build_id = module->build_id,
        .start = module->start,
        .end = module->end,
        .bias = module->bias,
        .code_address = module->code_address,
        .code_offset = module->code_offset,
    };
    file_found_in(&stacks->files[stacks->files_count], process, module);
    return (uint32_t)stacks->files_count++;
}

static bool place_eq(const struct ml_place *a, const struct ml_place *b) {
    return a->kind == b->kind && a->file == b->file && a->offset == b->offset &&
           a->process == b->process && ml_profile_text_eq(a->name, b->name);
}

static uint64_t place_hash(const struct ml_place *place) {
    const uint64_t key[] = {place->kind, place->file, place->offset, place->process};

    return ml_hash(ml_hash(0, key, sizeof key), place->name.bytes, place->name.count_bytes);
}

static uint64_t node_hash(uint32_t parent, uint32_t place) {
    const uint32_t key[] = {parent, place};

    return ml_hash(0, key, sizeof key);
}

bool ml_stacks_reindex(struct ml_stacks *stacks) {
    bool done = true;

    ml_index_fini(&stacks->places_index);
    ml_index_fini(&stacks->nodes_index);
    for (uint32_t i = 0; done && i < stacks->places_count; i++) {
        done = ml_index_add(&stacks->places_index, place_hash(&stacks->places[i]), i);
    }
    for (uint32_t i = 0; done && i < stacks->nodes_count; i++) {
        const struct ml_stack_node *node = &stacks->nodes[i];
        done = ml_index_add(&stacks->nodes_index, node_hash(node->parent, node->place), i);
    }
    return done;
}

uint32_t ml_stacks_place(struct ml_stacks *stacks, const struct ml_place *place) {
    uint64_t hash = place_hash(place);
    size_t at = 0;

    for (uint32_t item = ml_index_first(&stacks->places_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&stacks->places_index, hash, &at)) {
        if (place_eq(&stacks->places[item], place)) {
            return item;
        }
    }
    if (!ML_GROW(stacks->places, stacks->places_capacity, stacks->places_count + 1) ||
        !ml_index_add(&stacks->places_index, hash, (uint32_t)stacks->places_count)) {
        return ML_STACKS_NONE;
    }
    stacks->places[stacks->places_count] = *place;
    return (uint32_t)stacks->places_count++;
}

static int order_places(const void *left, const void *right, void *context) {
    const struct ml_place *places = context;
    const struct ml_place *a = &places[*(const uint32_t *)left];
    const struct ml_place *b = &places[*(const uint32_t *)right];

    if (a->file != b->file) {
        return (a->file > b->file) - (a->file < b->file);
    }
    return (a->offset > b->offset) - (a->offset < b->offset);
}

void ml_stacks_sort_places(const struct ml_stacks *stacks, uint32_t *places, size_t count) {
    qsort_r(places, count, sizeof *places, order_places, stacks->places);
}

uint32_t ml_stacks_node(struct ml_stacks *stacks, uint32_t parent, uint32_t place) {
    uint64_t hash = node_hash(parent, place);
    size_t at = 0;

    for (uint32_t item = ml_index_first(&stacks->nodes_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&stacks->nodes_index, hash, &at)) {
        if (stacks->nodes[item].parent == parent && stacks->nodes[item].place == place) {
            return item;
        }
    }
    if (!ML_GROW(stacks->nodes, stacks->nodes_capacity, stacks->nodes_count + 1) ||
        !ml_index_add(&stacks->nodes_index, hash, (uint32_t)stacks->nodes_count)) {
        return ML_STACKS_NONE;
    }
    stacks->nodes[stacks->nodes_count] = (struct ml_stack_node){.parent = parent, .place = place};
    return (uint32_t)stacks->nodes_count++;
}

struct ml_stack_list *ml_stacks_list(struct ml_stacks *stacks, size_t number) {
    if (number > stacks->processes_count) {
        return &stacks->details[number - stacks->processes_count - 1];
    }
    return number == 0 ? &stacks->tree : &stacks->processes[number - 1];
}

size_t ml_stacks_lists(const struct ml_stacks *stacks) {
    return 1 + stacks->processes_count + (stacks->details ? stacks->processes_count : 0);
}

/* The place of a process's node. */
static struct ml_place place_of(
    const struct ml_stacks *stacks,
    const struct ml_profile_process *process,
    const struct ml_profile_node *node,
    const uint32_t *files
) {
    uint32_t number = (uint32_t)(process - stacks->profile->processes);
    struct ml_place place = {
        .kind = node->frame, .file = ML_STACKS_NONE, .name = {.bytes = "", .count_bytes = 0}};
    size_t module = ml_profile_module_at(process, node->module);

    switch (node->frame) {
    case ML_FRAME_ADDRESS:
        place.offset = node->address;
        place.process = module == SIZE_MAX ? number + 1 : 0;
        if (module != SIZE_MAX) {
            place.file = files[module];
            place.offset -= (uint64_t)process->modules[module].bias;
        }
        break;
    case ML_FRAME_THREAD:
    case ML_FRAME_SCOPE:
        place.name = process->strings[node->string];
        break;
    case ML_FRAME_SCRIPT:
        place.name = ml_script_name(process->strings[node->string]);
        break;
    default:
        break;
    }
    return place;
}

/* Add the nodes of the process. `merged` receives their numbers among all. False: no memory. */
static bool nodes_merge(
    struct ml_stacks *stacks,
    const struct ml_profile_process *process,
    const uint32_t *files,
    uint32_t *merged
) {
    for (size_t i = 0; i < process->nodes_count; i++) {
        const struct ml_profile_node *node = &process->nodes[i];
        const struct ml_place place = place_of(stacks, process, node, files);
        uint32_t place_number = ml_stacks_place(stacks, &place);
        uint32_t parent = ML_STACKS_NONE;

        ml_progress_still();
        if (node->parent != 0) {
            parent = merged[ml_profile_node_at(process, node->parent)];
        }
        merged[i] = ml_stacks_node(stacks, parent, place_number);
        if (place_number == ML_STACKS_NONE || merged[i] == ML_STACKS_NONE) {
            return false;
        }
    }
    return true;
}

static bool cells_collect(
    const struct ml_profile_process *process, const uint32_t *merged, struct ml_stack_list *list
) {
    if (!ml_stack_list_reserve(list, process->cells_count)) {
        return false;
    }
    for (size_t i = 0; i < process->cells_count; i++) {
        const struct ml_profile_cell *cell = &process->cells[i];
        size_t node = ml_profile_node_at(process, cell->node);
        list->stacks[list->count++] =
            ml_stack_of_cell(cell, node == SIZE_MAX ? ML_STACKS_NONE : merged[node]);
    }
    ml_stack_list_finish(list);
    return true;
}

/* The cells of all heaps, by heap and type. */
static bool details_collect(
    const struct ml_profile_process *process, const uint32_t *merged, struct ml_stack_list *list
) {
    const size_t count = process->cells_count + process->apart_count;

    if (process->heaps_count == 0 && process->types_count == 0) {
        return true;
    }
    if (!ml_stack_list_reserve(list, count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ml_profile_cell *cell = &process->cells[i];
        size_t node = ml_profile_node_at(process, cell->node);
        struct ml_stack *stack = &list->stacks[list->count++];
        *stack = ml_stack_of_cell(cell, node == SIZE_MAX ? ML_STACKS_NONE : merged[node]);
        stack->heap = cell->heap;
        stack->type = cell->type;
    }
    ml_stack_list_finish(list);
    return true;
}

static enum ml_status process_collect(
    struct ml_stacks *stacks, const struct ml_profile_process *process, struct ml_stack_list *list
) {
    /* One more than needed, as calloc() of no items may return NULL. */
    uint32_t *files = calloc(process->modules_count + 1, sizeof *files);
    uint32_t *merged = calloc(process->nodes_count + 1, sizeof *merged);
    bool done = files && merged;

    for (size_t i = 0; done && i < process->modules_count; i++) {
        files[i] = file_intern(stacks, process, &process->modules[i]);
        done = files[i] != ML_STACKS_NONE;
    }
    done = done && nodes_merge(stacks, process, files, merged) &&
           cells_collect(process, merged, list) &&
           details_collect(process, merged, &stacks->details[process - stacks->profile->processes]);
    if (done && stacks->profile->trigger.process_id == process->id) {
        size_t node = ml_profile_node_at(process, stacks->profile->trigger.node);
        stacks->guilty = node == SIZE_MAX ? ML_STACKS_NONE : merged[node];
    }
    for (size_t i = 0; done && i < process->series_count; i++) {
        const size_t number = process->series_first + i;
        const size_t node = ml_profile_node_at(process, stacks->profile->series[number].node);
        stacks->series[number] = node == SIZE_MAX ? ML_STACKS_NONE : merged[node];
    }
    free(files);
    stacks->merged[process - stacks->profile->processes] = merged;
    return done ? ML_OK : ML_ENV_MEMORY;
}

bool ml_stacks_add_up(
    const struct ml_stacks *stacks,
    const struct ml_stack_list *processes,
    struct ml_stack_list *out_tree
) {
    const struct ml_profile *profile = stacks->profile;
    size_t count = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        count += processes[i].count;
    }
    if (!ml_stack_list_reserve(out_tree, count)) {
        return false;
    }
    for (size_t i = 0; i < stacks->processes_count; i++) {
        const struct ml_stack_list *list = &processes[i];
        const bool is_shown = ml_profile_is_shown(profile, &profile->processes[i]);
        for (size_t s = 0; s < list->count; s++) {
            out_tree->stacks[out_tree->count++] = ml_stack_in_tree(list->stacks[s], is_shown);
        }
    }
    ml_stack_list_finish(out_tree);
    return true;
}

void ml_stacks_take_details(struct ml_stacks *stacks, bool takes_heaps) {
    const bool takes_all = takes_heaps || stacks->profile->heap.bytes;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        struct ml_stack_list *list = &stacks->details[i];
        size_t kept = 0;

        for (size_t s = 0; s < list->count; s++) {
            if (takes_all || list->stacks[s].heap == 0) {
                list->stacks[kept++] = list->stacks[s];
            }
        }
        list->count = kept;
        if (list->stacks) {
            free(stacks->processes[i].stacks);
            stacks->processes[i] = *list;
            *list = (struct ml_stack_list){0};
        }
    }
    stacks->is_detailed = true;
}

enum ml_status ml_stacks_init(struct ml_stacks *stacks, const struct ml_profile *profile) {
    *stacks = (struct ml_stacks
    ){.profile = profile, .processes_count = profile->processes_count, .guilty = ML_STACKS_NONE};
    stacks->processes = calloc(profile->processes_count + 1, sizeof stacks->processes[0]);
    stacks->details = calloc(profile->processes_count + 1, sizeof stacks->details[0]);
    stacks->series = calloc(profile->series_count + 1, sizeof stacks->series[0]);
    stacks->merged = calloc(profile->processes_count + 1, sizeof stacks->merged[0]);
    if (!stacks->processes || !stacks->details || !stacks->series || !stacks->merged) {
        stacks->processes_count = 0;
        return ML_ENV_MEMORY;
    }
    for (size_t i = 0; i < profile->series_count; i++) {
        stacks->series[i] = ML_STACKS_NONE;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        ml_progress_pieces(
            "Merging processes", i, profile->processes_count, profile->processes[i].name.bytes
        );
        enum ml_status status =
            process_collect(stacks, &profile->processes[i], &stacks->processes[i]);
        if (status != ML_OK) {
            return status;
        }
    }
    return ml_stacks_add_up(stacks, stacks->processes, &stacks->tree) ? ML_OK : ML_ENV_MEMORY;
}

void ml_stacks_fini(struct ml_stacks *stacks) {
    for (size_t i = 0; i < stacks->processes_count; i++) {
        free(stacks->processes[i].stacks);
        free(stacks->details[i].stacks);
        free(stacks->merged[i]);
    }
    free(stacks->merged);
    free(stacks->processes);
    free(stacks->details);
    free(stacks->series);
    free(stacks->tree.stacks);
    free(stacks->files);
    free(stacks->places);
    free(stacks->nodes);
    free(stacks->symbols);
    ml_index_fini(&stacks->files_index);
    ml_index_fini(&stacks->places_index);
    ml_index_fini(&stacks->nodes_index);
    *stacks = (struct ml_stacks){0};
}

bool ml_place_is_script(const struct ml_place *place) {
    return place->kind == ML_FRAME_SCRIPT || (place->process != 0 && place->symbols_count > 0);
}

struct ml_profile_text ml_stacks_thread(const struct ml_stacks *stacks, uint32_t node) {
    const struct ml_place *place = NULL;

    if (node == ML_STACKS_NONE) {
        return (struct ml_profile_text){.bytes = "", .count_bytes = 0};
    }
    while (stacks->nodes[node].parent != ML_STACKS_NONE) {
        node = stacks->nodes[node].parent;
    }
    place = &stacks->places[stacks->nodes[node].place];
    if (place->kind == ML_FRAME_THREAD) {
        return place->name;
    }
    return (struct ml_profile_text){.bytes = "", .count_bytes = 0};
}

const char *ml_place_name(const struct ml_place *place, char buffer[ML_PLACE_NAME_BYTES]) {
    switch (place->kind) {
    case ML_FRAME_THREAD:
    case ML_FRAME_SCOPE:
    case ML_FRAME_SCRIPT:
    case ML_PLACE_FUNCTION:
    case ML_PLACE_GROUP:
        return place->name.count_bytes > 0 ? place->name.bytes : "[unnamed]";
    case ML_FRAME_CUT:
        return "[frames left out]";
    case ML_FRAME_BROKEN:
        return "[stack not walked further]";
    case ML_PLACE_OTHER:
        return "<other>";
    default:
        snprintf(buffer, ML_PLACE_NAME_BYTES, "0x%" PRIx64, place->offset);
        return buffer;
    }
}
