#include "tools/analyzer/stacks/types_internal.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/model/string_table.h"
#include "tools/analyzer/names/type_name.h"

/* What a stack tells: a number of `names`; NAMES_NONE: nothing. */
#define NAMES_NONE UINT32_MAX

struct told {
    bool was_asked;
    uint32_t name;
    enum ml_type_known known;
};

struct work {
    struct ml_stacks *stacks;
    struct ml_profile *profile;
    struct told *told; /* of each node */
    struct ml_string_table names;
    uint32_t *types; /* of each name, by frames and by constructor: its number in the process */
};

/* Ask a frame's functions, the innermost first. */
static enum ml_type_word ask_place(
    const struct ml_stacks *stacks, const struct ml_place *place, char out_name[ML_TYPE_NAME_BYTES]
) {
    enum ml_type_word word = ML_TYPE_GO_ON;

    if (place->kind != ML_FRAME_ADDRESS || place->symbols_count == 0) {
        return ML_TYPE_STOP;
    }
    for (size_t i = 0; word == ML_TYPE_GO_ON && i < place->symbols_count; i++) {
        const struct ml_symbol *symbol = &stacks->symbols[place->first_symbol + i];
        const struct ml_type_frame frame = {
            .function = symbol->function,
            .linkage = symbol->linkage,
            .inlines_are_known = symbol->line != 0};
        word = ml_type_of_frame(&frame, out_name);
    }
    return word;
}

/* What the node's stack tells. False: no memory. */
static bool ask_node(struct work *work, uint32_t node) {
    char name[ML_TYPE_NAME_BYTES];
    struct told *told = &work->told[node];
    enum ml_type_word word = ML_TYPE_GO_ON;

    if (told->was_asked) {
        return true;
    }
    *told = (struct told){.was_asked = true, .name = NAMES_NONE};
    while (word == ML_TYPE_GO_ON && node != ML_STACKS_NONE) {
        const struct ml_stack_node *frame = &work->stacks->nodes[node];
        word = ask_place(work->stacks, &work->stacks->places[frame->place], name);
        node = frame->parent;
    }
    if (word == ML_TYPE_ALLOCATED || word == ML_TYPE_CONSTRUCTED) {
        told->known = word == ML_TYPE_ALLOCATED ? ML_TYPE_BY_FRAMES : ML_TYPE_BY_CONSTRUCTOR;
        told->name = ml_string_table_copy(&work->names, name, strlen(name));
        return told->name != ML_STRING_NONE;
    }
    return true;
}

bool ml_stacks_make_details(struct ml_stacks *stacks, size_t number) {
    const struct ml_stack_list *list = &stacks->processes[number];
    struct ml_stack_list *details = &stacks->details[number];

    if (details->stacks || list->count == 0) {
        return true;
    }
    if (!ml_stack_list_reserve(details, list->count)) {
        return false;
    }
    memcpy(details->stacks, list->stacks, list->count * sizeof list->stacks[0]);
    details->count = list->count;
    return true;
}

/* The number that the type has in the process, which it gets when it is met first. 0: no memory. */
static uint32_t
type_in(struct work *work, struct ml_profile_process *process, const struct told *told) {
    const size_t at = 2 * (size_t)told->name + (told->known == ML_TYPE_BY_CONSTRUCTOR);

    if (work->types[at] == 0) {
        const struct ml_profile_typed type = {
            .name = work->names.strings[told->name], .known = told->known};
        work->types[at] = ml_profile_add_type(work->profile, process, type);
    }
    return work->types[at];
}

static bool
process_find(struct work *work, struct ml_profile_process *process, struct ml_stack_list *details) {
    for (size_t i = 0; i < details->count; i++) {
        const struct ml_stack *stack = &details->stacks[i];
        if (stack->type == 0 && stack->node != ML_STACKS_NONE && !ask_node(work, stack->node)) {
            return false;
        }
    }
    free(work->types);
    work->types = calloc(2 * work->names.count + 1, sizeof *work->types);
    if (!work->types) {
        return false;
    }
    for (size_t i = 0; i < details->count; i++) {
        struct ml_stack *stack = &details->stacks[i];
        if (stack->type != 0 || stack->node == ML_STACKS_NONE ||
            work->told[stack->node].name == NAMES_NONE) {
            continue;
        }
        stack->type = type_in(work, process, &work->told[stack->node]);
        if (stack->type == 0) {
            return false;
        }
    }
    ml_stack_list_finish(details);
    return true;
}

enum ml_status ml_stacks_find_types(struct ml_stacks *stacks, struct ml_profile *profile) {
    struct work work = {
        .stacks = stacks,
        .profile = profile,
        .told = calloc(stacks->nodes_count + 1, sizeof *work.told)};
    bool done = work.told != NULL;

    for (size_t i = 0; done && i < stacks->processes_count; i++) {
        done = ml_stacks_make_details(stacks, i) &&
               process_find(&work, &profile->processes[i], &stacks->details[i]);
    }
    ml_string_table_fini(&work.names);
    free(work.types);
    free(work.told);
    return done ? ML_OK : ML_ENV_MEMORY;
}
