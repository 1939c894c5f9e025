/* Lists of stacks with their figures. Room: tools. Context: one thread.
 *
 * One rule: a finished list has one entry a node; one of details has one for each node, heap and
 * type. It is sorted by live bytes, then peak, then
 * total, the largest first, then by node. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_STACK_LIST_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_STACK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/profile.h"

/* No file, parent or node. */
#define ML_STACKS_NONE UINT32_MAX

struct ml_stack {
    uint32_t node;                /* ML_STACKS_NONE: no stack */
    uint32_t heap, type;          /* in a list of details: the process's ids; else 0 */
    struct ml_profile_totals own; /* in the tree's list, peaks are shares of the tree's peak */
    uint64_t tree_peak_bytes, tree_peak_blocks;
    double tree_peak_bytes_variance, tree_peak_blocks_variance;
    uint64_t temporary_blocks;
};

struct ml_stack ml_stack_of_cell(const struct ml_profile_cell *cell, uint32_t node);

/* A process's stack for the tree's list. Its peak is its share of the tree's peak. `is_shown`: its
 * live blocks count. */
struct ml_stack ml_stack_in_tree(struct ml_stack stack, bool is_shown);

struct ml_stack_list {
    struct ml_stack *stacks;
    size_t count, capacity;
};

/* Make room for `count` entries. False: no memory. */
bool ml_stack_list_reserve(struct ml_stack_list *list, size_t count);

/* Finish the list: merge the entries of each node, and sort. */
void ml_stack_list_finish(struct ml_stack_list *list);

#endif
