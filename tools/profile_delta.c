#include "tools/profile_delta.h"

#include <stdlib.h>
#include <string.h>

static int by_number(uint64_t left, uint64_t right) {
    return (left > right) - (left < right);
}

/* What tells a cell: ids of nodes only ever grow, so they are the same in both dumps. */
static int order_of_cells(const void *left, const void *right) {
    const struct ml_profile_cell *a = left;
    const struct ml_profile_cell *b = right;
    int order = by_number(a->node, b->node);

    if (order == 0) {
        order = by_number(a->heap, b->heap);
    }
    if (order == 0) {
        order = by_number(a->type, b->type);
    }
    return order != 0 ? order : by_number(a->size_class, b->size_class);
}

static void
subtract_totals(struct ml_profile_totals *totals, const struct ml_profile_totals *less) {
    totals->live_bytes -= less->live_bytes;
    totals->live_blocks -= less->live_blocks;
    totals->total_bytes -= less->total_bytes;
    totals->total_blocks -= less->total_blocks;
}

static const struct ml_profile_process *
process_of(const struct ml_profile *profile, const struct ml_profile_process *like) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].id == like->id && profile->processes[i].pid == like->pid) {
            return &profile->processes[i];
        }
    }
    return NULL;
}

static bool
subtract_process(struct ml_profile_process *process, const struct ml_profile_process *before) {
    struct ml_profile_cell *cells = calloc(before->cells_count + 1, sizeof *cells);

    if (!cells) {
        return false;
    }
    if (before->cells_count > 0) {
        memcpy(cells, before->cells, before->cells_count * sizeof *cells);
        qsort(cells, before->cells_count, sizeof *cells, order_of_cells);
    }
    for (size_t i = 0; i < process->cells_count; i++) {
        struct ml_profile_cell *cell = &process->cells[i];
        const struct ml_profile_cell *old =
            bsearch(cell, cells, before->cells_count, sizeof *cells, order_of_cells);
        if (old) {
            subtract_totals(&cell->own, &old->own);
            cell->temporary_blocks -= old->temporary_blocks;
        }
    }
    subtract_totals(&process->totals, &before->totals);
    free(cells);
    return true;
}

enum ml_status ml_profile_subtract(struct ml_profile *profile, const struct ml_profile *before) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        const struct ml_profile_process *old = process_of(before, process);
        if (!old) {
            continue;
        }
        subtract_totals(&profile->tree, &old->totals);
        if (!subtract_process(process, old)) {
            return ML_ENV_MEMORY;
        }
    }
    return ML_OK;
}
