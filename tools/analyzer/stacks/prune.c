#include "tools/analyzer/stacks/prune.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/stacks/prune_internal.h"

bool ml_prune_keeps_size(const struct ml_stack *stack, uint64_t below_bytes) {
    return stack->own.live_bytes >= below_bytes || stack->own.peak_bytes >= below_bytes ||
           stack->tree_peak_bytes >= below_bytes ||
           stack->own.live_blocks >= ML_PRUNE_KEPT_BLOCKS ||
           stack->own.peak_blocks >= ML_PRUNE_KEPT_BLOCKS ||
           stack->tree_peak_blocks >= ML_PRUNE_KEPT_BLOCKS;
}

/* Mark the node and its callers. */
static void mark_path(const struct ml_stacks *stacks, uint32_t node, bool *marks) {
    while (node != ML_STACKS_NONE && !marks[node]) {
        marks[node] = true;
        node = stacks->nodes[node].parent;
    }
}

bool ml_prune_fold(struct ml_stacks *stacks, struct ml_stack_list *list, const bool *stays_here) {
    const struct ml_place other = {
        .kind = ML_PLACE_OTHER, .file = ML_STACKS_NONE, .name = {.bytes = "", .count_bytes = 0}};
    uint32_t other_place = ml_stacks_place(stacks, &other);
    bool *is_kept = calloc(stacks->nodes_count + 1, sizeof *is_kept);
    bool done = is_kept && other_place != ML_STACKS_NONE;

    for (size_t i = 0; done && i < list->count; i++) {
        if (stays_here[i]) {
            mark_path(stacks, list->stacks[i].node, is_kept);
        }
    }
    for (size_t i = 0; done && i < list->count; i++) {
        uint32_t node = list->stacks[i].node;
        /* A stack that consists of callers of a kept one costs nothing more. */
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

static bool list_prune(struct ml_stacks *stacks, struct ml_stack_list *list, uint64_t below_bytes) {
    bool *stays_here = calloc(list->count + 1, sizeof *stays_here);
    bool done = stays_here != NULL;

    for (size_t i = 0; done && i < list->count; i++) {
        stays_here[i] = ml_prune_keeps_size(&list->stacks[i], below_bytes);
    }
    done = done && ml_prune_fold(stacks, list, stays_here);
    free(stays_here);
    return done;
}

void ml_prune_renumber(struct ml_stacks *stacks, const uint32_t *numbers) {
    for (size_t l = 0; l < ml_stacks_lists(stacks); l++) {
        struct ml_stack_list *list = ml_stacks_list(stacks, l);
        for (size_t i = 0; i < list->count; i++) {
            if (list->stacks[i].node != ML_STACKS_NONE) {
                list->stacks[i].node = numbers[list->stacks[i].node];
            }
        }
    }
}

/* Keep the marked nodes and their places. The order stays, so parents still come first. */
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
    ml_prune_renumber(stacks, nodes);
    if (stacks->guilty != ML_STACKS_NONE) {
        stacks->guilty = marks[stacks->guilty] ? nodes[stacks->guilty] : ML_STACKS_NONE;
    }
    free(nodes);
    free(places);
    return true;
}

enum ml_status ml_stacks_forget(struct ml_stacks *stacks) {
    bool *marks = calloc(stacks->nodes_count + 1, sizeof *marks);
    bool done = marks != NULL;

    for (size_t l = 0; done && l < ml_stacks_lists(stacks); l++) {
        const struct ml_stack_list *list = ml_stacks_list(stacks, l);
        for (size_t i = 0; i < list->count; i++) {
            mark_path(stacks, list->stacks[i].node, marks);
        }
    }
    done = done && nodes_compact(stacks, marks);
    free(marks);
    /* The indices still hold the old numbers. */
    done = done && ml_stacks_reindex(stacks);
    return done ? ML_OK : ML_ENV_MEMORY;
}

enum ml_status ml_stacks_prune(struct ml_stacks *stacks, uint64_t below_bytes) {
    bool done = true;

    if (below_bytes == 0) {
        return ML_OK;
    }
    for (size_t i = 0; done && i < ml_stacks_lists(stacks); i++) {
        done = list_prune(stacks, ml_stacks_list(stacks, i), below_bytes);
    }
    return done ? ml_stacks_forget(stacks) : ML_ENV_MEMORY;
}

/* A profile may have no stack. Its arrays are NULL then, which memcpy() must not be given. */
static void copy_array(void *to, const void *from, size_t count_bytes) {
    if (count_bytes > 0) {
        memcpy(to, from, count_bytes);
    }
}

bool ml_stacks_copy_init(struct ml_stacks_copy *copy, struct ml_stacks *stacks) {
    size_t total = 0;

    for (size_t i = 0; i < ml_stacks_lists(stacks); i++) {
        total += ml_stacks_list(stacks, i)->count;
    }
    *copy = (struct ml_stacks_copy){
        .nodes = calloc(stacks->nodes_count + 1, sizeof *copy->nodes),
        .places = calloc(stacks->places_count + 1, sizeof *copy->places),
        .stacks = calloc(total + 1, sizeof *copy->stacks),
        .counts = calloc(ml_stacks_lists(stacks), sizeof *copy->counts),
        .nodes_count = stacks->nodes_count,
        .places_count = stacks->places_count,
        .guilty = stacks->guilty,
    };
    if (!copy->nodes || !copy->places || !copy->stacks || !copy->counts) {
        ml_stacks_copy_fini(copy);
        return false;
    }
    copy_array(copy->nodes, stacks->nodes, stacks->nodes_count * sizeof *copy->nodes);
    copy_array(copy->places, stacks->places, stacks->places_count * sizeof *copy->places);
    total = 0;
    for (size_t i = 0; i < ml_stacks_lists(stacks); i++) {
        const struct ml_stack_list *list = ml_stacks_list(stacks, i);
        copy->counts[i] = list->count;
        copy_array(copy->stacks + total, list->stacks, list->count * sizeof *copy->stacks);
        total += list->count;
    }
    return true;
}

void ml_stacks_copy_fini(struct ml_stacks_copy *copy) {
    free(copy->nodes);
    free(copy->places);
    free(copy->stacks);
    free(copy->counts);
    *copy = (struct ml_stacks_copy){0};
}

enum ml_status ml_stacks_restore(struct ml_stacks *stacks, const struct ml_stacks_copy *copy) {
    size_t at = 0;

    /* The lists have only lost entries since. Their arrays never shrink, so the copy fits. */
    copy_array(stacks->nodes, copy->nodes, copy->nodes_count * sizeof *copy->nodes);
    copy_array(stacks->places, copy->places, copy->places_count * sizeof *copy->places);
    stacks->nodes_count = copy->nodes_count;
    stacks->places_count = copy->places_count;
    stacks->guilty = copy->guilty;
    for (size_t i = 0; i < ml_stacks_lists(stacks); i++) {
        struct ml_stack_list *list = ml_stacks_list(stacks, i);
        copy_array(list->stacks, copy->stacks + at, copy->counts[i] * sizeof *copy->stacks);
        list->count = copy->counts[i];
        at += copy->counts[i];
    }
    return ml_stacks_reindex(stacks) ? ML_OK : ML_ENV_MEMORY;
}
