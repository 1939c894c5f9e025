/* Standard errors of sampled processes' figures; tools/analyzer/model/profile.h. */
#include "tools/analyzer/model/profile.h"

/* Dumps count standard errors in 1/256. */
static double variance_of(uint64_t error) {
    const double whole = (double)error / 256;
    return whole * whole;
}

/* The square root by Newton's method, from above. Each step at least halves the excess, until
 * nothing changes. */
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

#define ADD(figure) sum->figure += one->figure;

static void spread_add(struct ml_profile_spread *sum, const struct ml_profile_spread *one) {
    ML_PROFILE_FIGURES(ADD)
}

static void spread_cell(struct ml_profile_cell *cell) {
#define OF_ERROR(figure) .figure = variance_of(cell->own_errors.figure),
    cell->own.variances = (struct ml_profile_spread){ML_PROFILE_FIGURES(OF_ERROR)};
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
        for (size_t c = 0; c < process->apart_count; c++) {
            spread_cell(&process->cells[process->cells_count + c]);
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

#define ROOT(figure) .figure = root(variances->figure),
    *out_errors = (struct ml_profile_spread){ML_PROFILE_FIGURES(ROOT)};
    /* Some have live figures alone: tools/analyzer/stacks/types.h. */
    return variances->total_bytes > 0 || variances->total_blocks > 0 || variances->live_bytes > 0 ||
           variances->live_blocks > 0;
}

void ml_profile_totals_add(struct ml_profile_totals *sum, const struct ml_profile_totals *one) {
    ML_PROFILE_FIGURES(ADD)
    sum->pages.resident_bytes += one->pages.resident_bytes;
    sum->pages.alone_bytes += one->pages.alone_bytes;
    sum->pages.waste_bytes += one->pages.waste_bytes;
    spread_add(&sum->variances, &one->variances);
}
