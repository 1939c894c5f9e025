/* Merges many small stacks of one function into one stack, which has that function alone. */
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/stacks/attribution.h"
#include "tools/analyzer/stacks/prune.h"
#include "tools/analyzer/stacks/prune_internal.h"

bool ml_prune_is_by_function(const struct ml_stacks *stacks, uint32_t node) {
    uint32_t parent = node == ML_STACKS_NONE ? ML_STACKS_NONE : stacks->nodes[node].parent;

    return parent != ML_STACKS_NONE &&
           stacks->places[stacks->nodes[parent].place].kind == ML_PLACE_OTHER;
}

uint64_t ml_stacks_function_bytes(const struct ml_stacks *stacks) {
    uint64_t bytes = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        const struct ml_stack_list *list = &stacks->processes[i];
        for (size_t s = 0; s < list->count; s++) {
            bytes += ml_prune_is_by_function(stacks, list->stacks[s].node)
                         ? list->stacks[s].own.live_bytes
                         : 0;
        }
    }
    return bytes;
}

/* A place with the name of one function alone. It is the place itself if the function has no name,
 * or if its library is a common one. ML_STACKS_NONE: no memory. */
static uint32_t function_place(struct ml_stacks *stacks, uint32_t place, size_t symbol) {
    const struct ml_place *whole = &stacks->places[place];
    const char *function = NULL;

    if ((whole->kind != ML_FRAME_ADDRESS && whole->kind != ML_FRAME_SCRIPT) ||
        symbol >= whole->symbols_count ||
        (whole->file != ML_STACKS_NONE && ml_attribution_is_common(&stacks->files[whole->file]))) {
        return place;
    }
    function = stacks->symbols[whole->first_symbol + symbol].function;
    if (!function[0]) {
        return place;
    }
    const struct ml_place alone = {
        .kind = ML_PLACE_FUNCTION,
        .file = ML_STACKS_NONE,
        .name = {.bytes = function, .count_bytes = strlen(function)},
    };
    return ml_stacks_place(stacks, &alone);
}

/* The place of each stack's attributed function, and what all stacks of each place are worth. */
struct functions {
    uint32_t *places; /* by stack; ML_STACKS_NONE: no function is attributed */
    uint64_t *worth;  /* by place */
};

static void functions_fini(struct functions *functions) {
    free(functions->places);
    free(functions->worth);
}

/* ML_STACKS_NONE: no function is attributed, or, with *out_done false, no memory. */
static uint32_t place_of(struct ml_stacks *stacks, uint32_t node, bool *out_done) {
    struct ml_attribution attribution = {.node = ML_STACKS_NONE};
    uint32_t place = ML_STACKS_NONE;

    *out_done = true;
    if (node != ML_STACKS_NONE &&
        stacks->places[stacks->nodes[node].place].kind != ML_PLACE_OTHER) {
        attribution = ml_attribution_find(stacks, node);
    }
    if (attribution.node != ML_STACKS_NONE && attribution.is_named) {
        place = function_place(stacks, stacks->nodes[attribution.node].place, attribution.symbol);
        *out_done = place != ML_STACKS_NONE;
    }
    return place;
}

/* False: no memory; _fini is still needed. */
static bool functions_init(
    struct functions *functions, struct ml_stacks *stacks, const struct ml_stack_list *list
) {
    bool done = true;

    *functions = (struct functions){.places = calloc(list->count + 1, sizeof(uint32_t))};
    done = functions->places != NULL;
    for (size_t i = 0; done && i < list->count; i++) {
        functions->places[i] = place_of(stacks, list->stacks[i].node, &done);
    }
    functions->worth = calloc(stacks->places_count + 1, sizeof *functions->worth);
    done = done && functions->worth;
    for (size_t i = 0; done && i < list->count; i++) {
        if (functions->places[i] != ML_STACKS_NONE) {
            functions->worth[functions->places[i]] += ml_prune_stack_worth(&list->stacks[i]);
        }
    }
    return done;
}

bool ml_prune_by_function(
    struct ml_stacks *stacks, struct ml_stack_list *list, bool *stays_here, uint64_t least_worth
) {
    const struct ml_place other = {
        .kind = ML_PLACE_OTHER, .file = ML_STACKS_NONE, .name = {.bytes = "", .count_bytes = 0}};
    const uint32_t other_place = ml_stacks_place(stacks, &other);
    const uint32_t root = ml_stacks_node(stacks, ML_STACKS_NONE, other_place);
    struct functions functions;
    bool done = functions_init(&functions, stacks, list) && root != ML_STACKS_NONE;

    for (size_t i = 0; done && i < list->count; i++) {
        const uint32_t place = functions.places[i];
        if (!stays_here[i] && place != ML_STACKS_NONE && functions.worth[place] >= least_worth) {
            list->stacks[i].node = ml_stacks_node(stacks, root, place);
            stays_here[i] = true;
            done = list->stacks[i].node != ML_STACKS_NONE;
        }
    }
    functions_fini(&functions);
    return done;
}
