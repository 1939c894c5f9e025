#include "tools/analyzer/report/diff.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/stacks/frame_tree.h"
#include "tools/analyzer/stacks/module_pairs.h"

struct builder {
    struct ml_diff *diff;
    struct ml_frame_tree tree;
    uint32_t *rows; /* of each frame; ML_STACKS_NONE: no stack ends there */
    size_t rows_count, rows_capacity;
    uint32_t no_stack_row;
};

/* Add an empty entry for each new frame. False: no memory. */
static bool rows_grow(struct builder *builder) {
    if (!ML_GROW(builder->rows, builder->rows_capacity, builder->tree.frames_count)) {
        return false;
    }
    while (builder->rows_count < builder->tree.frames_count) {
        builder->rows[builder->rows_count++] = ML_STACKS_NONE;
    }
    return true;
}

static struct ml_diff_stack *
row_of(struct builder *builder, uint32_t *row, enum ml_diff_side side, uint32_t node) {
    struct ml_diff *diff = builder->diff;

    if (*row == ML_STACKS_NONE) {
        if (!ML_GROW(diff->stacks, diff->capacity, diff->count + 1)) {
            return NULL;
        }
        diff->stacks[diff->count] = (struct ml_diff_stack){.side = side, .node = node};
        *row = (uint32_t)diff->count++;
    } else if (diff->stacks[*row].side < side) {
        /* The later build's source lines are those that people have before them. */
        diff->stacks[*row].side = side;
        diff->stacks[*row].node = node;
    }
    return &diff->stacks[*row];
}

static bool side_add(
    struct builder *builder,
    const struct ml_stacks *stacks,
    const char *const *names,
    enum ml_diff_side side
) {
    uint32_t *frames = calloc(stacks->nodes_count + 1, sizeof *frames);
    bool done = frames && ml_frame_tree_add_named(&builder->tree, stacks, names, frames) &&
                rows_grow(builder);

    for (size_t i = 0; done && i < stacks->tree.count; i++) {
        const struct ml_stack *stack = &stacks->tree.stacks[i];
        uint32_t *row = stack->node == ML_STACKS_NONE ? &builder->no_stack_row
                                                      : &builder->rows[frames[stack->node]];
        struct ml_diff_stack *entry = row_of(builder, row, side, stack->node);
        if (entry) {
            ml_profile_totals_add(&entry->sides[side], &stack->own);
        }
        done = entry != NULL;
    }
    free(frames);
    return done;
}

enum ml_status
ml_diff_init(struct ml_diff *diff, const struct ml_stacks *from, const struct ml_stacks *to) {
    struct builder builder = {.diff = diff, .no_stack_row = ML_STACKS_NONE};
    const char **names = ml_module_names(from, to);
    bool done = false;

    *diff = (struct ml_diff){0};
    done = names && side_add(&builder, from, NULL, ML_DIFF_FROM) &&
           side_add(&builder, to, names, ML_DIFF_TO);
    free(names);
    ml_frame_tree_fini(&builder.tree);
    free(builder.rows);
    return done ? ML_OK : ML_ENV_MEMORY;
}

void ml_diff_fini(struct ml_diff *diff) {
    ml_diff_groups_fini(&diff->types);
    ml_diff_groups_fini(&diff->heaps);
    free(diff->stacks);
    *diff = (struct ml_diff){0};
}

/* ---- types and heaps */

static bool tells(const struct ml_stacks *stacks, enum ml_breakdown_by by) {
    for (size_t i = 0; i < stacks->processes_count; i++) {
        const struct ml_profile_process *process = &stacks->profile->processes[i];
        if (by == ML_BY_TYPE ? process->types_count > 0 : process->heaps_count > 0) {
            return true;
        }
    }
    return false;
}

static bool
rows_add(struct ml_diff_groups *groups, const struct ml_breakdown *rows, enum ml_diff_side side) {
    for (size_t i = 0; i < rows->rows_count; i++) {
        const struct ml_breakdown_row *row = &rows->rows[i];
        size_t at = 0;
        while (at < groups->count && (strcmp(groups->rows[at].name, row->name) != 0 ||
                                      strcmp(groups->rows[at].known, row->module) != 0)) {
            at++;
        }
        if (at == groups->count) {
            if (!ML_GROW(groups->rows, groups->capacity, groups->count + 1)) {
                return false;
            }
            groups->rows[groups->count++] =
                (struct ml_diff_group){.name = row->name, .known = row->module};
        }
        ml_profile_totals_add(&groups->rows[at].sides[side], &row->self);
    }
    return true;
}

/* The larger minus the smaller. */
static uint64_t change_of(const struct ml_diff_group *group, enum ml_metric metric) {
    const uint64_t from = ml_metric_bytes(&group->sides[ML_DIFF_FROM], metric);
    const uint64_t to = ml_metric_bytes(&group->sides[ML_DIFF_TO], metric);

    return from < to ? to - from : from - to;
}

static int order_groups(const void *left, const void *right, void *context) {
    const struct ml_diff_group *a = left;
    const struct ml_diff_group *b = right;
    const enum ml_metric *metric = context;
    const uint64_t a_change = change_of(a, *metric);
    const uint64_t b_change = change_of(b, *metric);

    if (a_change != b_change) {
        return a_change < b_change ? 1 : -1;
    }
    return strcmp(a->name, b->name);
}

enum ml_status ml_diff_groups_init(
    struct ml_diff_groups *groups,
    const struct ml_stacks *from,
    const struct ml_stacks *to,
    enum ml_breakdown_by by,
    enum ml_metric metric
) {
    const struct ml_stacks *const sides[] = {from, to};
    enum ml_status status = ML_OK;

    *groups = (struct ml_diff_groups){0};
    if (!tells(from, by) && !tells(to, by)) {
        return ML_OK;
    }
    for (int side = 0; status == ML_OK && side < ML_DIFF_SIDES; side++) {
        status = ml_breakdown_init(&groups->breakdowns[side], sides[side], by, false);
        if (status == ML_OK && !rows_add(groups, &groups->breakdowns[side], side)) {
            status = ML_ENV_MEMORY;
        }
    }
    if (groups->count > 1) {
        qsort_r(groups->rows, groups->count, sizeof groups->rows[0], order_groups, &metric);
    }
    return status;
}

void ml_diff_groups_fini(struct ml_diff_groups *groups) {
    ml_breakdown_fini(&groups->breakdowns[ML_DIFF_FROM]);
    ml_breakdown_fini(&groups->breakdowns[ML_DIFF_TO]);
    free(groups->rows);
}
