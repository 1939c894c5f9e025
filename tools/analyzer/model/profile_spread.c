/* Standard errors of sampled processes' figures; tools/analyzer/model/profile.h. */
#include "tools/analyzer/model/profile.h"

/* Dumps count standard errors in 1/256. */
static double variance_of(uint64_t error) {
    const double whole = (double)error / 256;
    return whole * whole;
}

/* Newton's root, from above: each step at least halves what is too much, until nothing changes. */
static double root(double square) {
    double guess = square > 1 ? square : 1;

    if (square <= 0) {
        return 0;
    }
    for (;;) {
        const double next = (guess + square / guess) / 2;
        if (next >= guess) {
            return guess;
        }
        guess = next;
    }
}

static void spread_add(struct ml_profile_spread *sum, const struct ml_profile_spread *one) {
    sum->live_bytes += one->live_bytes;
    sum->live_blocks += one->live_blocks;
    sum->peak_bytes += one->peak_bytes;
    sum->peak_blocks += one->peak_blocks;
    sum->total_bytes += one->total_bytes;
    sum->total_blocks += one->total_blocks;
}

static void spread_cell(struct ml_profile_cell *cell) {
    cell->own.variances = (struct ml_profile_spread){
        .live_bytes = variance_of(cell->own_errors.live_bytes),
        .live_blocks = variance_of(cell->own_errors.live_blocks),
        .peak_bytes = variance_of(cell->own_errors.peak_bytes),
        .peak_blocks = variance_of(cell->own_errors.peak_blocks),
        .total_bytes = variance_of(cell->own_errors.total_bytes),
        .total_blocks = variance_of(cell->own_errors.total_blocks),
    };
    cell->tree_peak_bytes_variance = variance_of(cell->tree_peak_bytes_error);
    cell->tree_peak_blocks_variance = variance_of(cell->tree_peak_blocks_error);
}

void ml_profile_spread_errors(struct ml_profile *profile) {
    struct ml_profile_spread *tree = &profile->tree.variances;

    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        struct ml_profile_spread *own = &process->totals.variances;

        for (size_t c = 0; c < process->cells_count; c++) {
            struct ml_profile_cell *cell = &process->cells[c];
            spread_cell(cell);
            spread_add(own, &cell->own.variances);
            tree->peak_bytes += cell->tree_peak_bytes_variance;
            tree->peak_blocks += cell->tree_peak_blocks_variance;
        }
        tree->live_bytes += own->live_bytes;
        tree->live_blocks += own->live_blocks;
        tree->total_bytes += own->total_bytes;
        tree->total_blocks += own->total_blocks;
    }
}

bool ml_profile_standard_errors(
    const struct ml_profile_totals *totals, struct ml_profile_spread *out_errors
) {
    const struct ml_profile_spread *variances = &totals->variances;

    *out_errors = (struct ml_profile_spread){
        .live_bytes = root(variances->live_bytes),
        .live_blocks = root(variances->live_blocks),
        .peak_bytes = root(variances->peak_bytes),
        .peak_blocks = root(variances->peak_blocks),
        .total_bytes = root(variances->total_bytes),
        .total_blocks = root(variances->total_blocks),
    };
    return variances->total_bytes > 0 || variances->total_blocks > 0;
}

void ml_profile_totals_add(struct ml_profile_totals *sum, const struct ml_profile_totals *one) {
    sum->live_bytes += one->live_bytes;
    sum->live_blocks += one->live_blocks;
    sum->peak_bytes += one->peak_bytes;
    sum->peak_blocks += one->peak_blocks;
    sum->total_bytes += one->total_bytes;
    sum->total_blocks += one->total_blocks;
    spread_add(&sum->variances, &one->variances);
}
