#include "tools/analyzer/budget/match.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/stacks/attribution.h"

enum { NAME_BYTES = 1024 };

double ml_budget_pick(
    const struct ml_profile_totals *totals, enum ml_budget_figure figure, double *out_variance
) {
    const struct ml_profile_spread *variances = &totals->variances;

    switch (figure) {
    case ML_BUDGET_PEAK_BYTES:
        *out_variance = variances->peak_bytes;
        return (double)totals->peak_bytes;
    case ML_BUDGET_LEFT_BYTES:
        *out_variance = variances->live_bytes;
        return (double)totals->live_bytes;
    case ML_BUDGET_TOTAL_BYTES:
        *out_variance = variances->total_bytes;
        return (double)totals->total_bytes;
    case ML_BUDGET_PEAK_BLOCKS:
        *out_variance = variances->peak_blocks;
        return (double)totals->peak_blocks;
    case ML_BUDGET_LEFT_BLOCKS:
        *out_variance = variances->live_blocks;
        return (double)totals->live_blocks;
    case ML_BUDGET_TOTAL_BLOCKS:
        *out_variance = variances->total_blocks;
        return (double)totals->total_blocks;
    default:
        *out_variance = 0;
        return 0;
    }
}

/* "get[abi:cxx11]" is "get" to whoever wrote it. */
static void drop_tag(char *name) {
    char *tag = strstr(name, "[abi:");

    if (tag) {
        *tag = '\0';
    }
}

/* People write "Cache::get" as well as all of "char* Cache::get(int)". */
static bool is_name(const struct ml_pattern *pattern, const char *name) {
    char brief[NAME_BYTES];

    if (ml_pattern_matches(pattern, name)) {
        return true;
    }
    ml_function_name_brief(name, brief, sizeof brief);
    drop_tag(brief);
    return ml_pattern_matches(pattern, brief);
}

static uint32_t match_place(
    const struct ml_stacks *stacks, const struct ml_place *place, const struct ml_pattern *pattern
) {
    char buffer[ML_PLACE_NAME_BYTES];

    for (uint32_t i = 0; i < place->symbols_count; i++) {
        if (is_name(pattern, stacks->symbols[place->first_symbol + i].function)) {
            return i + 1;
        }
    }
    return place->symbols_count == 0 && place->kind != ML_FRAME_ADDRESS &&
           is_name(pattern, ml_place_name(place, buffer));
}

bool ml_budget_matcher_init(
    struct ml_budget_matcher *matcher,
    const struct ml_budget_rule *rule,
    const struct ml_stacks *stacks
) {
    *matcher = (struct ml_budget_matcher){.rule = rule, .stacks = stacks};
    if (!rule->has[ML_BUDGET_FUNCTION]) {
        return true;
    }
    matcher->matches = calloc(stacks->places_count + 1, sizeof *matcher->matches);
    for (size_t i = 0; matcher->matches && i < stacks->places_count; i++) {
        matcher->matches[i] =
            match_place(stacks, &stacks->places[i], &rule->patterns[ML_BUDGET_FUNCTION]);
    }
    return matcher->matches != NULL;
}

void ml_budget_matcher_fini(struct ml_budget_matcher *matcher) {
    free(matcher->matches);
    matcher->matches = NULL;
}

static bool has_function(const struct ml_budget_matcher *matcher, uint32_t node) {
    const struct ml_stack_node *nodes = matcher->stacks->nodes;

    for (; node != ML_STACKS_NONE; node = nodes[node].parent) {
        if (matcher->matches[nodes[node].place] != 0) {
            return true;
        }
    }
    return false;
}

/* Frames of the C library and the like have no part in it. */
static bool has_nameless(const struct ml_stacks *stacks, uint32_t node) {
    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        const struct ml_place *place = &stacks->places[stacks->nodes[node].place];
        if (place->kind == ML_FRAME_ADDRESS && place->symbols_count == 0 &&
            (place->file == ML_STACKS_NONE || !ml_attribution_is_common(&stacks->files[place->file])
            )) {
            return true;
        }
    }
    return false;
}

static bool is_of_module(const struct ml_budget_matcher *matcher, uint32_t node) {
    const struct ml_stacks *stacks = matcher->stacks;
    const struct ml_attribution attribution = ml_attribution_find(stacks, node);
    uint32_t file = ML_STACKS_NONE;

    if (attribution.node != ML_STACKS_NONE) {
        file = stacks->places[stacks->nodes[attribution.node].place].file;
    }
    return file != ML_STACKS_NONE &&
           ml_pattern_matches(
               &matcher->rule->patterns[ML_BUDGET_MODULE], basename(stacks->files[file].path.bytes)
           );
}

/* Of the heap and type that the rule is about. Without either it is about malloc's alone; types are
 * those of all heaps. */
static bool is_of_kind(
    const struct ml_budget_rule *rule,
    const struct ml_profile_process *process,
    const struct ml_stack *stack
) {
    const bool has_heap = rule->has[ML_BUDGET_HEAP];

    if (!has_heap && !rule->has[ML_BUDGET_TYPE]) {
        return stack->heap == 0;
    }
    return (!has_heap ||
            ml_pattern_matches(
                &rule->patterns[ML_BUDGET_HEAP], ml_profile_heap_name(process, stack->heap).bytes
            )) &&
           (!rule->has[ML_BUDGET_TYPE] ||
            ml_pattern_matches(
                &rule->patterns[ML_BUDGET_TYPE], ml_profile_type_name(process, stack->type).bytes
            ));
}

void ml_budget_visit(
    const struct ml_budget_matcher *matcher,
    size_t index,
    enum ml_budget_figure figure,
    struct ml_budget_sum *sum,
    ml_budget_take take,
    void *context
) {
    const struct ml_budget_rule *rule = matcher->rule;
    const struct ml_stacks *stacks = matcher->stacks;
    const bool is_each = ml_budget_is_of_processes(rule);
    const bool is_detailed = (rule->has[ML_BUDGET_TYPE] || rule->has[ML_BUDGET_HEAP]) &&
                             stacks->details[index].count > 0;
    const struct ml_stack_list *list =
        is_detailed ? &stacks->details[index] : &stacks->processes[index];

    for (size_t i = 0; i < list->count; i++) {
        const struct ml_stack *stack = &list->stacks[i];
        const struct ml_stack in_tree = ml_stack_in_tree(*stack, true);
        double variance = 0;
        const double value =
            ml_budget_pick(is_each ? &stack->own : &in_tree.own, figure, &variance);
        if (!is_of_kind(rule, &stacks->profile->processes[index], stack)) {
            continue;
        }
        if (matcher->matches && !has_function(matcher, stack->node)) {
            sum->nameless += has_nameless(stacks, stack->node) ? value : 0;
            continue;
        }
        if (rule->has[ML_BUDGET_MODULE] && !is_of_module(matcher, stack->node)) {
            continue;
        }
        sum->has_matched = true;
        sum->value += value;
        sum->variance += variance;
        if (take) {
            take(context, stack, value);
        }
    }
}

void ml_budget_sum_process(
    const struct ml_budget_matcher *matcher,
    size_t index,
    enum ml_budget_figure figure,
    struct ml_budget_sum *sum
) {
    ml_budget_visit(matcher, index, figure, sum, NULL, NULL);
}
