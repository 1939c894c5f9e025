/* The variances of a sampled process's figures, beside its counter cells. Room: service. Context:
 * whoever works on the client.
 *
 * One rule: a process that does not sample has none, at no cost.
 *
 * A block of size s that stands for w bytes and n blocks adds w (w - s) and n (n - 1): unbiased
 * estimates of the variances of what it adds to any sum of weights, ipc/wire/event.h. Blocks are
 * sampled independently of each other, so variances add up over blocks, cells and processes. A
 * peak's variance is that of the live sum at that moment; it ignores that the estimates themselves
 * chose the moment. */
#ifndef MEMLOG_SERVICE_HEAP_VARIANCES_H
#define MEMLOG_SERVICE_HEAP_VARIANCES_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/heap/live_map.h"
#include "service/limits/budget.h"

/* Weights are below 2^48, so 2^32 blocks of the largest still fit. */
__extension__ typedef unsigned __int128 ml_variance;

struct ml_variance_pair {
    ml_variance bytes, blocks;
};

/* One cell's, as struct ml_cell's figures. */
struct ml_cell_variances {
    struct ml_variance_pair live, total, peak, tree;
};

struct ml_variances {
    struct ml_budget *budget;
    struct ml_cell_variances *cells; /* by cell index; NULL: nothing was ever sampled */
    uint32_t capacity;               /* cells from here on have none: all 0 */
};

void ml_variances_init(struct ml_variances *variances, struct ml_budget *budget);
void ml_variances_fini(struct ml_variances *variances);

/* Room for the variances of cells [0, count). Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_variances_reserve(struct ml_variances *variances, uint32_t count);

/* A cell's; NULL: it has none. */
static inline struct ml_cell_variances *
ml_variances_of(const struct ml_variances *variances, uint32_t cell) {
    return cell < variances->capacity ? &variances->cells[cell] : NULL;
}

/* What one block adds. */
struct ml_variance_pair ml_variance_of(const struct ml_live_block *block);

/* Sum and difference; a difference is of what was once added. */
void ml_variance_add(struct ml_variance_pair *sum, struct ml_variance_pair one);
void ml_variance_take(struct ml_variance_pair *sum, struct ml_variance_pair one);

/* The standard error: the square root, in 1/256 of the figure's unit, rounded down; saturating. */
uint64_t ml_variance_error(ml_variance variance);

#endif
