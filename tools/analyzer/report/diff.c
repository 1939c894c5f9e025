#include "tools/analyzer/report/diff.h"

#include <stdlib.h>

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
    free(diff->stacks);
    *diff = (struct ml_diff){0};
}
