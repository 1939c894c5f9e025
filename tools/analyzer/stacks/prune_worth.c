/* Which stacks of a profile stay, by their worth for the bytes that they add to a body. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/stacks/attribution.h"
#include "tools/analyzer/stacks/prune.h"
#include "tools/analyzer/stacks/prune_internal.h"

/* The rough cost of a stack in a body, in compressed bytes: a row of figures, a frame whose name is
 * in the body already, and a name. Only the proportions matter. */
enum {
    ROW_COST = 8,
    FRAME_COST = 6,
    NAME_COST = 6,
    NAME_LETTERS_A_BYTE = 2,
    FILE_COST = 64, /* path and build id: a body needs them once a frame of the file has no name */
    PROCESS_COST = 64, /* processes without a stack may share one entry */
};

/* A stack is worth less by this factor if its attributed function has no name. Its reader needs the
 * symbols of the file first. */
enum { NAMELESS_PART = 2 };

static uint64_t name_cost(const char *name) {
    return NAME_COST + strlen(name) / NAME_LETTERS_A_BYTE;
}

/* The cost of a place whose names are not in the body yet. */
static uint64_t place_cost(const struct ml_stacks *stacks, const struct ml_place *place) {
    char buffer[ML_PLACE_NAME_BYTES];
    uint64_t cost = 0;

    for (size_t i = 0; i < place->symbols_count; i++) {
        cost += name_cost(stacks->symbols[place->first_symbol + i].function);
    }
    return cost > 0 ? cost : name_cost(ml_place_name(place, buffer));
}

/* A block costs its program some 16 bytes more than its size. What was held at a peak counts half
 * as much as what is live. */
uint64_t ml_prune_stack_worth(const struct ml_stack *stack) {
    enum { BLOCK_BYTES = 16 };
    uint64_t live = stack->own.live_bytes + BLOCK_BYTES * stack->own.live_blocks;
    uint64_t peak = stack->own.peak_bytes + BLOCK_BYTES * stack->own.peak_blocks;
    uint64_t tree = stack->tree_peak_bytes + BLOCK_BYTES * stack->tree_peak_blocks;

    return live + (peak > tree ? peak : tree) / 2;
}

struct candidate {
    uint64_t worth;
    uint32_t index;
};

static int order_candidates(const void *left, const void *right) {
    const struct candidate *a = left;
    const struct candidate *b = right;

    if (a->worth != b->worth) {
        return a->worth < b->worth ? 1 : -1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* What a rule keeps of a list. */
struct choice {
    struct candidate *candidates;              /* the largest first */
    bool *nodes, *places, *files, *stays_here; /* what is in the body already, or stays */
    bool is_begun;                             /* some stack stays */
};

static void choice_fini(struct choice *choice) {
    free(choice->candidates);
    free(choice->nodes);
    free(choice->places);
    free(choice->files);
    free(choice->stays_here);
    *choice = (struct choice){0};
}

/* False: no memory; nothing is to be freed then. */
static bool choice_init(
    struct choice *choice, const struct ml_stacks *stacks, const struct ml_stack_list *list
) {
    *choice = (struct choice){
        .candidates = calloc(list->count + 1, sizeof *choice->candidates),
        .nodes = calloc(stacks->nodes_count + 1, sizeof *choice->nodes),
        .places = calloc(stacks->places_count + 1, sizeof *choice->places),
        .files = calloc(stacks->files_count + 1, sizeof *choice->files),
        .stays_here = calloc(list->count + 1, sizeof *choice->stays_here),
    };
    if (!choice->candidates || !choice->nodes || !choice->places || !choice->files ||
        !choice->stays_here) {
        choice_fini(choice);
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        const uint64_t worth = ml_prune_stack_worth(&list->stacks[i]);
        choice->candidates[i] = (struct candidate){
            .worth = ml_attribution_find(stacks, list->stacks[i].node).is_named
                         ? worth
                         : worth / NAMELESS_PART,
            .index = (uint32_t)i,
        };
    }
    qsort(choice->candidates, list->count, sizeof choice->candidates[0], order_candidates);
    return true;
}

static bool needs_file(const struct ml_place *place) {
    return place->symbols_count == 0 && place->file != ML_STACKS_NONE;
}

static uint64_t
cost_of(const struct ml_stacks *stacks, const struct choice *choice, uint32_t node) {
    uint64_t cost = ROW_COST + (choice->is_begun ? 0 : PROCESS_COST);

    while (node != ML_STACKS_NONE && !choice->nodes[node]) {
        const uint32_t number = stacks->nodes[node].place;
        const struct ml_place *place = &stacks->places[number];
        cost += FRAME_COST * (place->symbols_count > 0 ? place->symbols_count : 1);
        cost += choice->places[number] ? 0 : place_cost(stacks, place);
        cost += needs_file(place) && !choice->files[place->file] ? FILE_COST : 0;
        node = stacks->nodes[node].parent;
    }
    return cost;
}

static void keep(const struct ml_stacks *stacks, struct choice *choice, uint32_t node) {
    choice->is_begun = true;
    while (node != ML_STACKS_NONE && !choice->nodes[node]) {
        const uint32_t number = stacks->nodes[node].place;
        const struct ml_place *place = &stacks->places[number];
        choice->nodes[node] = true;
        choice->places[number] = true;
        if (needs_file(place)) {
            choice->files[place->file] = true;
        }
        node = stacks->nodes[node].parent;
    }
}

/* Whether there is a stack, and it is not folded: its innermost place is not `<other>`. */
static bool is_told(const struct ml_stacks *stacks, uint32_t node) {
    return node != ML_STACKS_NONE &&
           stacks->places[stacks->nodes[node].place].kind != ML_PLACE_OTHER;
}

static bool is_large(const struct ml_stack *stack, const struct ml_prune_rule *rule) {
    return rule->below_bytes > 0 && ml_prune_keeps_size(stack, rule->below_bytes);
}

/* Whether there is a whole stack, neither folded nor merged by function. */
static bool is_told_whole(const struct ml_stacks *stacks, uint32_t node) {
    return is_told(stacks, node) && !ml_prune_is_by_function(stacks, node);
}

/* The stack that is worth most. NULL: none has any worth. */
static const struct ml_stack *
top_of(const struct ml_stacks *stacks, const struct ml_stack_list *lists, size_t count) {
    const struct ml_stack *top = NULL;
    uint64_t top_worth = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t s = 0; s < lists[i].count; s++) {
            const struct ml_stack *stack = &lists[i].stacks[s];
            const uint64_t worth = ml_prune_stack_worth(stack);
            if (worth > top_worth && is_told(stacks, stack->node)) {
                top = stack;
                top_worth = worth;
            }
        }
    }
    return top;
}

/* The state of choosing by a rule. */
struct picking {
    const struct ml_prune_rule *rule;
    const struct ml_stack *top; /* always stays */
    uint64_t margin_left;       /* how many may stay that are worth less */
};

static bool is_worth(struct picking *picking, double worth, double cost) {
    if (worth >= picking->rule->least_worth * cost) {
        return true;
    }
    if (picking->margin_left > 0 && worth >= picking->rule->margin_worth * cost) {
        picking->margin_left--;
        return true;
    }
    return false;
}

/* Choose the stacks that stay, the largest first. They pay for the callers that smaller ones
 * share. */
static void choose(
    const struct ml_stacks *stacks,
    const struct ml_stack_list *list,
    struct choice *choice,
    struct picking *picking
) {
    memset(choice->nodes, 0, stacks->nodes_count * sizeof choice->nodes[0]);
    memset(choice->places, 0, stacks->places_count * sizeof choice->places[0]);
    memset(choice->files, 0, stacks->files_count * sizeof choice->files[0]);
    choice->is_begun = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct candidate *candidate = &choice->candidates[i];
        const struct ml_stack *stack = &list->stacks[candidate->index];
        const uint32_t node = stack->node;
        const bool is_guilty = node != ML_STACKS_NONE && node == stacks->guilty;
        /* What was folded or merged before is not a stack. */
        const bool is_other = node != ML_STACKS_NONE && !is_told_whole(stacks, node);
        const bool stays =
            is_guilty || stack == picking->top || is_large(stack, picking->rule) ||
            (!is_other &&
             is_worth(picking, (double)candidate->worth, (double)cost_of(stacks, choice, node)));
        choice->stays_here[candidate->index] = stays;
        if (stays) {
            keep(stacks, choice, node);
        }
    }
}

/* A program may have more types than the smallest body has room for rows. */
static void forget_types(const struct ml_stacks *stacks, struct ml_stack_list *list) {
    bool any = false;

    for (size_t i = 0; i < list->count; i++) {
        struct ml_stack *stack = &list->stacks[i];
        if (stack->type != 0 && stack->node != ML_STACKS_NONE &&
            !is_told_whole(stacks, stack->node)) {
            stack->type = 0;
            any = true;
        }
    }
    if (any) {
        ml_stack_list_finish(list);
    }
}

static bool
list_prune_by(struct ml_stacks *stacks, struct ml_stack_list *list, struct picking *picking) {
    const uint64_t function_worth = picking->rule->function_worth;
    struct choice choice;
    bool done = choice_init(&choice, stacks, list);

    if (!done) {
        return false;
    }
    choose(stacks, list, &choice, picking);
    if (function_worth > 0) {
        /* A stack that consists of callers of a kept one stays, too: all of it is in the body. */
        for (size_t i = 0; i < list->count; i++) {
            const uint32_t node = list->stacks[i].node;
            choice.stays_here[i] =
                choice.stays_here[i] || (is_told_whole(stacks, node) && choice.nodes[node]);
        }
        done = ml_prune_by_function(stacks, list, choice.stays_here, function_worth);
    }
    done = done && ml_prune_fold(stacks, list, choice.stays_here);
    if (done) {
        forget_types(stacks, list);
    }
    choice_fini(&choice);
    return done;
}

enum ml_status ml_stacks_prune_by(struct ml_stacks *stacks, const struct ml_prune_rule *rule) {
    struct picking picking = {rule, top_of(stacks, &stacks->tree, 1), rule->margin_count};
    bool done = list_prune_by(stacks, &stacks->tree, &picking);

    picking = (struct picking
    ){rule, top_of(stacks, stacks->processes, stacks->processes_count), rule->margin_count};
    for (size_t i = 0; done && i < stacks->processes_count; i++) {
        done = list_prune_by(stacks, &stacks->processes[i], &picking);
    }
    return done ? ml_stacks_forget(stacks) : ML_ENV_MEMORY;
}

/* ---- bytes that keep their stack */

uint64_t ml_stacks_told_bytes(const struct ml_stacks *stacks) {
    uint64_t told_bytes = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        const struct ml_stack_list *list = &stacks->processes[i];
        for (size_t s = 0; s < list->count; s++) {
            told_bytes +=
                is_told_whole(stacks, list->stacks[s].node) ? list->stacks[s].own.live_bytes : 0;
        }
    }
    return told_bytes;
}

uint64_t ml_stacks_worth(const struct ml_stacks *stacks) {
    uint64_t worth = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        for (size_t s = 0; s < stacks->processes[i].count; s++) {
            worth += ml_prune_stack_worth(&stacks->processes[i].stacks[s]);
        }
    }
    return worth;
}

/* The live bytes of a list that keep their stack after such a choice. Stacks that consist of
 * callers of kept ones count, too. */
static uint64_t told_by(
    const struct ml_stacks *stacks, const struct ml_stack_list *list, const struct choice *choice
) {
    uint64_t told_bytes = 0;

    for (size_t i = 0; i < list->count; i++) {
        const uint32_t node = list->stacks[i].node;
        if (is_told_whole(stacks, node) && choice->nodes[node]) {
            told_bytes += list->stacks[i].own.live_bytes;
        }
    }
    return told_bytes;
}

static uint64_t
told_with(const struct ml_stacks *stacks, struct choice *choices, double least_worth) {
    const struct ml_prune_rule rule = {.least_worth = least_worth};
    struct picking picking = {
        .rule = &rule, .top = top_of(stacks, stacks->processes, stacks->processes_count)};
    uint64_t told_bytes = 0;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        choose(stacks, &stacks->processes[i], &choices[i], &picking);
        told_bytes += told_by(stacks, &stacks->processes[i], &choices[i]);
    }
    return told_bytes;
}

double ml_prune_worth(uint32_t step) {
    const double part = (double)(step % ML_PRUNE_STEPS_A_BIT) / ML_PRUNE_STEPS_A_BIT;

    return ldexp(1 + part, (int)(step / ML_PRUNE_STEPS_A_BIT));
}

/* Binary search over the steps of the scale, since a higher worth never keeps more. */
static double search(const struct ml_stacks *stacks, struct choice *choices, uint64_t told_bytes) {
    uint32_t low = 0;
    uint32_t high = ML_PRUNE_STEPS;

    if (told_with(stacks, choices, ml_prune_worth(low)) < told_bytes) {
        return 0;
    }
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (told_with(stacks, choices, ml_prune_worth(middle)) >= told_bytes) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return ml_prune_worth(low);
}

enum ml_status
ml_stacks_worth_to_tell(const struct ml_stacks *stacks, uint64_t told_bytes, double *out_worth) {
    struct choice *choices = calloc(stacks->processes_count + 1, sizeof *choices);
    bool done = choices != NULL;

    *out_worth = 0;
    for (size_t i = 0; done && i < stacks->processes_count; i++) {
        done = choice_init(&choices[i], stacks, &stacks->processes[i]);
    }
    if (done) {
        *out_worth = search(stacks, choices, told_bytes);
    }
    for (size_t i = 0; choices && i < stacks->processes_count; i++) {
        choice_fini(&choices[i]);
    }
    free(choices);
    return done ? ML_OK : ML_ENV_MEMORY;
}
