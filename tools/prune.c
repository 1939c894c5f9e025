#include "tools/prune.h"

#include <stdbool.h>
#include <stdlib.h>

static bool stays(const struct ml_stack *stack, uint64_t below_bytes, uint64_t kept_blocks) {
    return stack->own.live_bytes >= below_bytes || stack->own.peak_bytes >= below_bytes ||
           stack->tree_peak_bytes >= below_bytes || stack->own.live_blocks >= kept_blocks ||
           stack->own.peak_blocks >= kept_blocks || stack->tree_peak_blocks >= kept_blocks;
}

/* Mark the node and its callers. */
static void mark_path(const struct ml_stacks *stacks, uint32_t node, bool *marks) {
    while (node != ML_STACKS_NONE && !marks[node]) {
        marks[node] = true;
        node = stacks->nodes[node].parent;
    }
}

static bool list_prune(
    struct ml_stacks *stacks, struct ml_stack_list *list, uint64_t below_bytes, uint64_t kept_blocks
) {
    const struct ml_place other = {
        .kind = ML_PLACE_OTHER, .file = ML_STACKS_NONE, .name = {.bytes = "", .count_bytes = 0}};
    uint32_t other_place = ml_stacks_place(stacks, &other);
    bool *is_kept = calloc(stacks->nodes_count + 1, sizeof *is_kept);
    bool done = is_kept && other_place != ML_STACKS_NONE;

    for (size_t i = 0; done && i < list->count; i++) {
        if (stays(&list->stacks[i], below_bytes, kept_blocks)) {
            mark_path(stacks, list->stacks[i].node, is_kept);
        }
    }
    for (size_t i = 0; done && i < list->count; i++) {
        uint32_t node = list->stacks[i].node;
        /* One that is on the way to another costs nothing more. */
        if (node == ML_STACKS_NONE || is_kept[node]) {
            continue;
        }
        while (node != ML_STACKS_NONE && !is_kept[node]) {
            node = stacks->nodes[node].parent;
        }
        list->stacks[i].node = ml_stacks_node(stacks, node, other_place);
        done = list->stacks[i].node != ML_STACKS_NONE;
    }
    free(is_kept);
    if (done) {
        ml_stack_list_finish(list);
    }
    return done;
}

static void list_renumber(struct ml_stack_list *list, const uint32_t *numbers) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->stacks[i].node != ML_STACKS_NONE) {
            list->stacks[i].node = numbers[list->stacks[i].node];
        }
    }
}

/* Keep marked nodes and their places, in their order: parents still come first. */
static bool nodes_compact(struct ml_stacks *stacks, const bool *marks) {
    uint32_t *nodes = calloc(stacks->nodes_count + 1, sizeof *nodes);
    uint32_t *places = calloc(stacks->places_count + 1, sizeof *places); /* new number + 1 */
    uint32_t count = 0;

    if (!nodes || !places) {
        free(nodes);
        free(places);
        return false;
    }
    for (size_t i = 0; i < stacks->nodes_count; i++) {
        if (marks[i]) {
            struct ml_stack_node node = stacks->nodes[i];
            places[node.place] = 1;
            node.parent = node.parent == ML_STACKS_NONE ? ML_STACKS_NONE : nodes[node.parent];
            nodes[i] = count;
            stacks->nodes[count++] = node;
        }
    }
    stacks->nodes_count = count;
    count = 0;
    for (size_t i = 0; i < stacks->places_count; i++) {
        if (places[i] != 0) {
            stacks->places[count] = stacks->places[i];
            places[i] = ++count;
        }
    }
    stacks->places_count = count;
    for (size_t i = 0; i < stacks->nodes_count; i++) {
        stacks->nodes[i].place = places[stacks->nodes[i].place] - 1;
    }
    for (size_t i = 0; i < stacks->processes_count; i++) {
        list_renumber(&stacks->processes[i], nodes);
    }
    list_renumber(&stacks->tree, nodes);
    if (stacks->guilty != ML_STACKS_NONE) {
        stacks->guilty = marks[stacks->guilty] ? nodes[stacks->guilty] : ML_STACKS_NONE;
    }
    free(nodes);
    free(places);
    return true;
}

static void
list_mark(const struct ml_stacks *stacks, const struct ml_stack_list *list, bool *marks) {
    for (size_t i = 0; i < list->count; i++) {
        mark_path(stacks, list->stacks[i].node, marks);
    }
}

enum ml_status ml_stacks_forget(struct ml_stacks *stacks) {
    bool *marks = calloc(stacks->nodes_count + 1, sizeof *marks);
    bool done = marks != NULL;

    if (done) {
        list_mark(stacks, &stacks->tree, marks);
        for (size_t i = 0; i < stacks->processes_count; i++) {
            list_mark(stacks, &stacks->processes[i], marks);
        }
        done = nodes_compact(stacks, marks);
    }
    free(marks);
    /* They hold the numbers of before. */
    done = done && ml_stacks_reindex(stacks);
    return done ? ML_OK : ML_ENV_MEMORY;
}

enum ml_status ml_stacks_prune(struct ml_stacks *stacks, uint64_t below_bytes) {
    return ml_stacks_prune_to(stacks, below_bytes, ML_PRUNE_KEPT_BLOCKS);
}

enum ml_status
ml_stacks_prune_to(struct ml_stacks *stacks, uint64_t below_bytes, uint64_t kept_blocks) {
    bool done = below_bytes == 0 || list_prune(stacks, &stacks->tree, below_bytes, kept_blocks);

    for (size_t i = 0; below_bytes > 0 && done && i < stacks->processes_count; i++) {
        done = list_prune(stacks, &stacks->processes[i], below_bytes, kept_blocks);
    }
    if (!done || below_bytes == 0) {
        return done ? ML_OK : ML_ENV_MEMORY;
    }
    return ml_stacks_forget(stacks);
}
