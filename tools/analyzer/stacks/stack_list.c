#include "tools/analyzer/stacks/stack_list.h"

#include <stdlib.h>

static int order_by_node(const void *left, const void *right) {
    const struct ml_stack *a = left;
    const struct ml_stack *b = right;

    return (a->node > b->node) - (a->node < b->node);
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
        if (one->node == last->node) {
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
