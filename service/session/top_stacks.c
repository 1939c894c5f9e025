#include "service/session/top_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "service/session/fold_tables.h"

/* ---- which cells stay */

/* The largest so far, the largest first. */
struct largest {
    uint32_t cells[ML_TOP_STACKS_CELLS];
    uint32_t count;
};

/* By the bytes that it holds or held at the peak of its process, then by its total. */
static bool is_larger(const struct ml_tracker *tracker, uint32_t a, uint32_t b) {
    const struct ml_cell *cells = tracker->cells.cells;
    uint64_t most[2];
    for (int i = 0; i < 2; i++) {
        const struct ml_cell *cell = &cells[i == 0 ? a : b];
        const uint64_t peak_bytes = ml_tracker_peak_share(tracker, cell).bytes;
        most[i] = cell->live_bytes > peak_bytes ? cell->live_bytes : peak_bytes;
    }
    return most[0] != most[1] ? most[0] > most[1] : cells[a].total_bytes > cells[b].total_bytes;
}

static void rank(const struct ml_tracker *tracker, struct largest *largest, uint32_t cell) {
    uint32_t at = largest->count;
    if (at == ML_TOP_STACKS_CELLS) {
        at--;
        if (!is_larger(tracker, cell, largest->cells[at])) {
            return;
        }
    } else {
        largest->count++;
    }
    for (; at > 0 && is_larger(tracker, cell, largest->cells[at - 1]); at--) {
        largest->cells[at] = largest->cells[at - 1];
    }
    largest->cells[at] = cell;
}

/* One byte a cell, which the caller frees; NULL without memory. */
static uint8_t *choose(const struct ml_tracker *tracker) {
    struct largest largest = {.count = 0};
    uint8_t *kept = calloc((size_t)tracker->cells.count + 1, 1);
    if (kept == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        rank(tracker, &largest, i);
    }
    for (uint32_t i = 0; i < largest.count; i++) {
        kept[largest.cells[i]] = 1;
    }
    return kept;
}

/* ---- the new tables */

/* Define the one stack of all others: a scope without a caller. */
static enum ml_status define_others(struct ml_stack_store *stacks, uint32_t *out_node) {
    const struct ml_event name = {
        .kind = ML_EVENT_STRING,
        .name = {
            .id = 1,
            .bytes = (const uint8_t *)ML_TOP_STACKS_OTHERS,
            .bytes_count = sizeof(ML_TOP_STACKS_OTHERS) - 1}};
    const struct ml_event node = {
        .kind = ML_EVENT_NODE, .node = {.id = 1, .frame = ML_FRAME_SCOPE, .string_id = 1}};
    const enum ml_status status = ml_stack_store_define(stacks, &name);
    *out_node = 1;
    return status == ML_OK ? ml_stack_store_define(stacks, &node) : status;
}

static enum ml_status fill(
    struct ml_stack_store *stacks,
    struct ml_tracker *tracker,
    const struct ml_stack_store *old_stacks,
    const struct ml_tracker *old
) {
    struct ml_fold_tables tables = {.index = NULL};
    uint8_t *kept = choose(old);
    struct ml_fold_choice choice = {.kept = kept};
    enum ml_status status =
        kept != NULL ? define_others(stacks, &choice.others_node) : ML_ENV_MEMORY;
    if (status == ML_OK) {
        status = ml_fold_tables_init(&tables, stacks, tracker);
    }
    if (status == ML_OK) {
        status = ml_fold_tables_add(&tables, old_stacks, old, NULL, &choice);
        ml_fold_tables_fini(&tables);
    }
    free(kept);
    return status;
}

/* Its figures beside those of its cells. */
static void carry_over(struct ml_tracker *tracker, const struct ml_tracker *old) {
    tracker->in_tree = old->in_tree;
    tracker->left_epoch = old->left_epoch;
    tracker->absent_epoch = old->absent_epoch;
    tracker->peak_ticks = old->peak_ticks;
    tracker->unknown_frees = old->unknown_frees;
    tracker->missed_frees = old->missed_frees;
    tracker->undefined_nodes = old->undefined_nodes;
    if (old->totals_only) {
        ml_tracker_keep_totals(tracker);
    }
}

enum ml_status ml_top_stacks_keep(struct ml_stack_store *stacks, struct ml_tracker *tracker) {
    struct ml_stack_store new_stacks;
    struct ml_tracker top_stacks;
    ml_stack_store_init(&new_stacks, stacks->budget);
    ml_tracker_init(&top_stacks, stacks->budget, tracker->tree, &new_stacks, 0);
    const enum ml_status status = fill(&new_stacks, &top_stacks, stacks, tracker);
    if (status != ML_OK) {
        ml_tracker_fini(&top_stacks);
        ml_stack_store_fini(&new_stacks);
        return status;
    }
    carry_over(&top_stacks, tracker);
    ml_tracker_fini(tracker);
    ml_stack_store_fini(stacks);
    *stacks = new_stacks;
    *tracker = top_stacks;
    tracker->stacks = stacks;
    return ML_OK;
}
