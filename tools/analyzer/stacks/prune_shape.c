/* Shortens stacks, and merges the stacks that read the same. */
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/stacks/attribution.h"
#include "tools/analyzer/stacks/prune.h"
#include "tools/analyzer/stacks/prune_internal.h"

/* The most frames of a stack that stay, and the most of them inside of its attributed function. The
 * inner frames show how the function allocated. */
enum { SHORTENED_MAX = 64, INNER_MAX = 16 };

/* The frames that stay of a stack, innermost first. */
struct short_stack {
    uint32_t places[SHORTENED_MAX];
    uint32_t count;
    bool is_cut; /* frames further out are left out */
};

static bool push(struct short_stack *stack, uint32_t frames, uint32_t place) {
    if (stack->count == frames || stack->count == SHORTENED_MAX) {
        stack->is_cut = true;
        return false;
    }
    stack->places[stack->count++] = place;
    return true;
}

/* The stack as a node. ML_STACKS_NONE: no memory. */
static uint32_t
short_node(struct ml_stacks *stacks, const struct short_stack *stack, uint32_t cut_place) {
    uint32_t at = ML_STACKS_NONE;
    uint32_t left = stack->count;
    bool done = true;

    if (stack->is_cut) {
        at = ml_stacks_node(stacks, ML_STACKS_NONE, cut_place);
        done = at != ML_STACKS_NONE;
    }
    while (done && left > 0) {
        at = ml_stacks_node(stacks, at, stack->places[--left]);
        done = at != ML_STACKS_NONE;
    }
    return at;
}

/* The stack with its inner frames, the attributed function and `frames` - 1 frames further out.
 * Returns `node` if the stack has no more. ML_STACKS_NONE: no memory. */
static uint32_t
shortened(struct ml_stacks *stacks, uint32_t node, uint32_t frames, uint32_t cut_place) {
    const struct ml_attribution attribution = ml_attribution_find(stacks, node);
    struct short_stack stack = {.count = 0};
    uint32_t inner = 0;

    for (uint32_t at = node; at != attribution.node && inner < INNER_MAX; inner++) {
        at = stacks->nodes[at].parent;
    }
    for (uint32_t at = node; at != ML_STACKS_NONE; at = stacks->nodes[at].parent) {
        if (!push(&stack, inner + frames, stacks->nodes[at].place)) {
            break;
        }
    }
    return stack.is_cut ? short_node(stacks, &stack, cut_place) : node;
}

static bool list_shorten(
    struct ml_stacks *stacks, struct ml_stack_list *list, uint32_t frames, uint32_t cut_place
) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->stacks[i].node != ML_STACKS_NONE) {
            list->stacks[i].node = shortened(stacks, list->stacks[i].node, frames, cut_place);
            if (list->stacks[i].node == ML_STACKS_NONE) {
                return false;
            }
        }
    }
    ml_stack_list_finish(list);
    return true;
}

enum ml_status ml_stacks_shorten(struct ml_stacks *stacks, uint32_t frames) {
    const struct ml_place cut = {
        .kind = ML_FRAME_CUT, .file = ML_STACKS_NONE, .name = {.bytes = "", .count_bytes = 0}};
    uint32_t cut_place = ml_stacks_place(stacks, &cut);
    bool done =
        cut_place != ML_STACKS_NONE && list_shorten(stacks, &stacks->tree, frames, cut_place);

    if (done && stacks->guilty != ML_STACKS_NONE) {
        stacks->guilty = shortened(stacks, stacks->guilty, frames, cut_place);
        done = stacks->guilty != ML_STACKS_NONE;
    }
    for (size_t i = 0; done && i < stacks->processes_count; i++) {
        done = list_shorten(stacks, &stacks->processes[i], frames, cut_place);
    }
    return done ? ml_stacks_forget(stacks) : ML_ENV_MEMORY;
}

/* ---- merging */

static bool
names_eq(const struct ml_stacks *stacks, const struct ml_place *a, const struct ml_place *b) {
    bool equal = a->symbols_count == b->symbols_count && a->kind == b->kind;

    for (size_t i = 0; equal && i < a->symbols_count; i++) {
        equal = strcmp(
                    stacks->symbols[a->first_symbol + i].function,
                    stacks->symbols[b->first_symbol + i].function
                ) == 0;
    }
    return equal;
}

/* For each place the first one with the same functions. A place without a name equals no other.
 * False: no memory. */
static bool places_merge(const struct ml_stacks *stacks, uint32_t *merged) {
    struct ml_index index = {0};
    bool done = true;

    for (uint32_t i = 0; done && i < stacks->places_count; i++) {
        const struct ml_place *place = &stacks->places[i];
        uint64_t hash = 0;
        uint32_t item = ML_INDEX_NONE;
        size_t at = 0;

        merged[i] = i;
        for (size_t s = 0; s < place->symbols_count; s++) {
            const char *name = stacks->symbols[place->first_symbol + s].function;
            hash = ml_hash(hash, name, strlen(name) + 1);
        }
        if (place->symbols_count == 0 || !stacks->symbols[place->first_symbol].function[0]) {
            continue;
        }
        item = ml_index_first(&index, hash, &at);
        while (item != ML_INDEX_NONE && !names_eq(stacks, place, &stacks->places[item])) {
            item = ml_index_next(&index, hash, &at);
        }
        if (item == ML_INDEX_NONE) {
            done = ml_index_add(&index, hash, i);
        } else {
            merged[i] = item;
        }
    }
    ml_index_fini(&index);
    return done;
}

/* For each node the first one that reads the same. Parents come first, so theirs is known. */
static bool nodes_merge(struct ml_stacks *stacks, const uint32_t *places, uint32_t *merged) {
    const size_t count = stacks->nodes_count;
    bool done = true;

    for (size_t i = 0; done && i < count; i++) {
        const struct ml_stack_node node = stacks->nodes[i];
        const uint32_t parent =
            node.parent == ML_STACKS_NONE ? ML_STACKS_NONE : merged[node.parent];
        merged[i] = ml_stacks_node(stacks, parent, places[node.place]);
        done = merged[i] != ML_STACKS_NONE;
    }
    return done;
}

enum ml_status ml_stacks_merge_functions(struct ml_stacks *stacks) {
    uint32_t *places = calloc(stacks->places_count + 1, sizeof *places);
    uint32_t *nodes = calloc(stacks->nodes_count + 1, sizeof *nodes);
    bool done =
        places && nodes && places_merge(stacks, places) && nodes_merge(stacks, places, nodes);

    if (done) {
        ml_prune_renumber(stacks, nodes);
        for (size_t i = 0; i < ml_stacks_lists(stacks); i++) {
            ml_stack_list_finish(ml_stacks_list(stacks, i));
        }
        if (stacks->guilty != ML_STACKS_NONE) {
            stacks->guilty = nodes[stacks->guilty];
        }
    }
    free(places);
    free(nodes);
    return done ? ml_stacks_forget(stacks) : ML_ENV_MEMORY;
}
