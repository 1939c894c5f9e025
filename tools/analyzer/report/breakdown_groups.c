/* A heap broken down two ways, for JSON; tools/analyzer/report/breakdown.h. */
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/report/breakdown.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/stacks/regroup.h"

static uint32_t place_of(const struct ml_groups *groups, uint32_t node) {
    return groups->stacks->nodes[node].place;
}

static bool is_group(const struct ml_stacks *stacks, uint32_t node) {
    return stacks->places[stacks->nodes[node].place].kind == ML_PLACE_GROUP;
}

/* The functions of an entry; ML_STACKS_NONE: it has none. */
static uint32_t functions_of(const struct ml_stacks *stacks, uint32_t node) {
    const uint32_t parent = stacks->nodes[node].parent;

    return parent == ML_STACKS_NONE || is_group(stacks, parent) ? ML_STACKS_NONE : parent;
}

/* What the entry stands below. */
static uint32_t above(const struct ml_groups *groups, const struct ml_stack *stack) {
    return groups->of == ML_GROUPS_OF_STACKS ? functions_of(groups->stacks, stack->node)
                                             : place_of(groups, stack->node);
}

static int order_entries(const void *left, const void *right, void *context) {
    const struct ml_stack *a = left;
    const struct ml_stack *b = right;
    const uint32_t above_a = above(context, a);
    const uint32_t above_b = above(context, b);

    if (above_a != above_b) {
        return above_a > above_b ? 1 : -1;
    }
    return (a->own.live_bytes < b->own.live_bytes) - (a->own.live_bytes > b->own.live_bytes);
}

static bool has_types(const struct ml_stacks *stacks) {
    bool has = false;

    for (size_t i = 0; i < stacks->processes_count; i++) {
        has = has || stacks->profile->processes[i].types_count > 0;
    }
    return has;
}

/* All processes' stacks with peaks of their own, as rows of heaps have them. */
static bool add_up_own(
    const struct ml_stacks *stacks, const struct ml_regrouped *from, struct ml_stack_list *list
) {
    size_t count = 0;

    for (size_t i = 0; i < from->processes_count; i++) {
        count += from->processes[i].count;
    }
    if (!ml_stack_list_reserve(list, count)) {
        return false;
    }
    for (size_t i = 0; i < from->processes_count; i++) {
        const bool is_shown = ml_profile_is_shown(stacks->profile, &stacks->profile->processes[i]);
        for (size_t s = 0; s < from->processes[i].count; s++) {
            struct ml_stack *stack = &list->stacks[list->count++];
            *stack = from->processes[i].stacks[s];
            if (!is_shown) {
                ml_profile_totals_forget_live(&stack->own);
            }
        }
    }
    ml_stack_list_finish(list);
    return true;
}

enum ml_status
ml_groups_init(struct ml_groups *groups, struct ml_stacks *stacks, enum ml_groups_of of) {
    struct ml_regrouped regrouped;
    enum ml_status status = ML_OK;

    *groups = (struct ml_groups){.stacks = stacks};
    if (of == ML_GROUPS_NONE || (of == ML_GROUPS_OF_STACKS && !has_types(stacks))) {
        return ML_OK;
    }
    groups->of = of;
    status = ml_regrouped_init(
        &regrouped,
        stacks,
        of == ML_GROUPS_OF_HEAPS ? ML_GROUP_BACKTRACE_HEAP : ML_GROUP_BACKTRACE_TYPE
    );
    if (status == ML_OK && of == ML_GROUPS_OF_HEAPS) {
        status = add_up_own(stacks, &regrouped, &groups->list) ? ML_OK : ML_ENV_MEMORY;
    } else if (status == ML_OK) {
        groups->list = regrouped.tree;
        regrouped.tree = (struct ml_stack_list){0};
    }
    if (groups->list.count > 1) {
        qsort_r(
            groups->list.stacks,
            groups->list.count,
            sizeof groups->list.stacks[0],
            order_entries,
            groups
        );
    }
    ml_regrouped_fini(&regrouped);
    return status;
}

void ml_groups_fini(struct ml_groups *groups) {
    free(groups->list.stacks);
    *groups = (struct ml_groups){0};
}

/* The first entry that stands below `what`, or the number of all. */
static size_t first_below(const struct ml_groups *groups, uint32_t what) {
    size_t low = 0;
    size_t high = groups->list.count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (above(groups, &groups->list.stacks[middle]) < what) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void
put_figures(struct ml_json *json, const struct ml_groups *groups, const struct ml_stack *stack) {
    ml_report_json_totals(json, &stack->own);
    ml_json_number_member(json, "temporary_blocks", stack->temporary_blocks);
    ml_report_json_pages(json, groups->stacks->profile, NULL, &stack->own);
}

void ml_report_json_types(struct ml_json *json, const struct ml_groups *groups, uint32_t node) {
    const struct ml_stacks *stacks = groups->stacks;

    if (groups->of != ML_GROUPS_OF_STACKS) {
        return;
    }
    ml_json_open_member(json, "types", '[');
    for (size_t i = first_below(groups, node);
         i < groups->list.count && above(groups, &groups->list.stacks[i]) == node;
         i++) {
        const struct ml_stack *stack = &groups->list.stacks[i];
        const struct ml_place *place = &stacks->places[place_of(groups, stack->node)];
        ml_json_open(json, '{');
        ml_json_text_member(json, "type", place->name.bytes, place->name.count_bytes);
        put_figures(json, groups, stack);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

/* The number of the place of that name, or ML_STACKS_NONE. */
static uint32_t place_named(const struct ml_stacks *stacks, const char *name) {
    for (size_t i = 0; i < stacks->places_count; i++) {
        if (stacks->places[i].kind == ML_PLACE_GROUP &&
            strcmp(stacks->places[i].name.bytes, name) == 0) {
            return (uint32_t)i;
        }
    }
    return ML_STACKS_NONE;
}

void ml_report_json_stacks_below(
    struct ml_json *json, const struct ml_groups *groups, const char *name, size_t limit
) {
    const struct ml_stacks *stacks = groups->stacks;

    if (groups->of != ML_GROUPS_OF_TYPES && groups->of != ML_GROUPS_OF_HEAPS) {
        return;
    }
    const uint32_t place = place_named(stacks, name);
    const size_t first = place == ML_STACKS_NONE ? groups->list.count : first_below(groups, place);
    ml_json_open_member(json, "stacks", '[');
    for (size_t i = first; i < groups->list.count && i - first < limit &&
                           above(groups, &groups->list.stacks[i]) == place;
         i++) {
        const struct ml_stack *stack = &groups->list.stacks[i];
        const uint32_t node = functions_of(stacks, stack->node);
        const struct ml_profile_text thread = ml_stacks_thread(stacks, node);
        ml_json_line(json);
        ml_json_open(json, '{');
        put_figures(json, groups, stack);
        ml_json_text_member(json, "thread", thread.bytes, thread.count_bytes);
        ml_report_json_frames(json, stacks, node);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}
