#include "tools/analyzer/stacks/stack_list.h"

#include <stdlib.h>

struct ml_stack ml_stack_of_cell(const struct ml_profile_cell *cell, uint32_t node) {
    return (struct ml_stack){
        .node = node,
        .own = cell->own,
        .tree_peak_bytes = cell->tree_peak_bytes,
        .tree_peak_blocks = cell->tree_peak_blocks,
        .tree_peak_bytes_variance = cell->tree_peak_bytes_variance,
        .tree_peak_blocks_variance = cell->tree_peak_blocks_variance,
        .temporary_blocks = cell->temporary_blocks,
    };
}

struct ml_stack ml_stack_in_tree(struct ml_stack stack, bool is_shown) {
    stack.own.peak_bytes = stack.tree_peak_bytes;
    stack.own.peak_blocks = stack.tree_peak_blocks;
    stack.own.variances.peak_bytes = stack.tree_peak_bytes_variance;
    stack.own.variances.peak_blocks = stack.tree_peak_blocks_variance;
    if (!is_shown) {
        ml_profile_totals_forget_live(&stack.own);
    }
    return stack;
}

static int order_by_node(const void *left, const void *right) {
    const struct ml_stack *a = left;
    const struct ml_stack *b = right;

    if (a->node != b->node) {
        return a->node > b->node ? 1 : -1;
    }
    if (a->heap != b->heap) {
        return a->heap > b->heap ? 1 : -1;
    }
    return (a->type > b->type) - (a->type < b->type);
}

static int descending(uint64_t a, uint64_t b) {
    return (a < b) - (a > b);
}

static int order_by_size(const void *left, const void *right) {
    const struct ml_stack *a = left;
    const struct ml_stack *b = right;
    int order = descending(a->own.live_bytes, b->own.live_bytes);

    if (order == 0) {
        order = descending(a->own.peak_bytes, b->own.peak_bytes);
    }
    if (order == 0) {
        order = descending(a->own.total_bytes, b->own.total_bytes);
    }
    return order != 0 ? order : order_by_node(left, right);
}

void ml_stack_list_finish(struct ml_stack_list *list) {
    size_t merged = 0;

    if (list->count == 0) {
        return;
    }
    qsort(list->stacks, list->count, sizeof list->stacks[0], order_by_node);
    for (size_t i = 1; i < list->count; i++) {
        const struct ml_stack *one = &list->stacks[i];
        struct ml_stack *last = &list->stacks[merged];
        if (order_by_node(one, last) == 0) {
            ml_profile_totals_add(&last->own, &one->own);
            last->tree_peak_bytes += one->tree_peak_bytes;
            last->tree_peak_blocks += one->tree_peak_blocks;
            last->tree_peak_bytes_variance += one->tree_peak_bytes_variance;
            last->tree_peak_blocks_variance += one->tree_peak_blocks_variance;
            last->temporary_blocks += one->temporary_blocks;
        } else {
            list->stacks[++merged] = *one;
        }
    }
    list->count = merged + 1;
    qsort(list->stacks, list->count, sizeof list->stacks[0], order_by_size);
}

bool ml_stack_list_reserve(struct ml_stack_list *list, size_t count) {
    return ML_GROW(list->stacks, list->capacity, count);
}
