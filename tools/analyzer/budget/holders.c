/* Who holds most of what a rule is about. Room: tools. */
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/budget/match.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/report/report.h"
#include "tools/analyzer/stacks/attribution.h"

/* Only so many stacks are read, the largest: what comes behind is not among three. */
enum { STACKS_READ = 200 };

struct held {
    uint32_t node;
    double value;
};

struct held_list {
    struct held *items;
    size_t count, capacity;
    bool has_failed;
};

static void take_stack(void *context, const struct ml_stack *stack, double value) {
    struct held_list *list = context;

    if (value <= 0 || list->has_failed || stack->node == ML_STACKS_NONE) {
        return;
    }
    if (!ML_GROW(list->items, list->capacity, list->count + 1)) {
        list->has_failed = true;
        return;
    }
    list->items[list->count++] = (struct held){.node = stack->node, .value = value};
}

static int order_held(const void *left, const void *right) {
    const struct held *a = left;
    const struct held *b = right;

    return a->value != b->value ? (a->value < b->value ? 1 : -1)
                                : (a->node > b->node) - (a->node < b->node);
}

static int order_holders(const void *left, const void *right) {
    const struct ml_budget_holder *a = left;
    const struct ml_budget_holder *b = right;

    return (a->value < b->value) - (a->value > b->value);
}

/* Stacks with the same callers are one holder. */
static bool merge(
    const struct ml_stacks *stacks,
    const struct held_list *list,
    struct ml_budget_holder holders[STACKS_READ],
    size_t *out_count
) {
    const struct ml_report report = {.profile = stacks->profile, .stacks = stacks};
    size_t count = 0;

    for (size_t i = 0; i < list->count && i < STACKS_READ; i++) {
        char callers[ML_REPORT_CALLERS_BYTES];
        size_t at = 0;
        ml_report_callers_of(&report, list->items[i].node, ML_BUDGET_CALLERS_COLUMNS, callers);
        while (at < count && strcmp(holders[at].callers, callers) != 0) {
            at++;
        }
        if (at == count) {
            holders[count] = (struct ml_budget_holder){.callers = strdup(callers)};
            if (!holders[count].callers) {
                return false;
            }
            count++;
        }
        holders[at].value += (uint64_t)list->items[i].value;
        *out_count = count;
    }
    ML_SORT(holders, count, order_holders);
    return true;
}

/* Where the function stands that the rule names, or the one that the largest stack is attributed
 * to. */
static const struct ml_symbol *
source_of(const struct ml_budget_matcher *matcher, const struct held_list *list) {
    const struct ml_stacks *stacks = matcher->stacks;

    if (list->count == 0) {
        return NULL;
    }
    for (uint32_t node = list->items[0].node; matcher->matches && node != ML_STACKS_NONE;
         node = stacks->nodes[node].parent) {
        const struct ml_place *place = &stacks->places[stacks->nodes[node].place];
        const uint32_t match = matcher->matches[stacks->nodes[node].place];
        if (match != 0 && place->symbols_count > 0) {
            return &stacks->symbols[place->first_symbol + match - 1];
        }
    }
    const struct ml_attribution attribution = ml_attribution_find(stacks, list->items[0].node);
    if (attribution.node == ML_STACKS_NONE || !attribution.is_named) {
        return NULL;
    }
    const struct ml_place *place = &stacks->places[stacks->nodes[attribution.node].place];
    return attribution.symbol < place->symbols_count
               ? &stacks->symbols[place->first_symbol + attribution.symbol]
               : NULL;
}

static bool tell_source(const struct ml_symbol *symbol, struct ml_budget_value *value) {
    if (!symbol) {
        return true;
    }
    value->source = symbol->file[0] ? strdup(symbol->file) : NULL;
    value->source_line = symbol->line;
    value->function = strdup(symbol->function);
    return value->function && (value->source || !symbol->file[0]);
}

bool ml_budget_tell_holders(
    const struct ml_budget_matcher *matcher,
    enum ml_budget_figure figure,
    struct ml_budget_value *value
) {
    const struct ml_profile *profile = matcher->stacks->profile;
    struct ml_budget_holder holders[STACKS_READ] = {{.callers = NULL}};
    struct held_list list = {.items = NULL};
    struct ml_budget_sum sum = {.value = 0};
    size_t count = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const bool is_it = value->process == 0 ? !ml_budget_is_of_processes(matcher->rule)
                                               : value->process == i + 1;
        if (is_it) {
            ml_budget_visit(matcher, i, figure, &sum, take_stack, &list);
        }
    }
    ML_SORT(list.items, list.count, order_held);
    const bool done = !list.has_failed && merge(matcher->stacks, &list, holders, &count) &&
                      tell_source(source_of(matcher, &list), value);
    for (size_t i = 0; i < count; i++) {
        if (i < ML_BUDGET_HOLDERS) {
            value->holders[i] = holders[i];
        } else {
            free(holders[i].callers);
        }
    }
    free(list.items);
    return done;
}
