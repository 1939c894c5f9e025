#include "service/heap/variances.h"

#include <string.h>

enum {
    CELLS_MIN = 32,
    ERROR_SHIFT = 16 /* twice the bits behind the point */
};

void ml_variances_init(struct ml_variances *variances, struct ml_budget *budget) {
    *variances = (struct ml_variances){.budget = budget};
}

void ml_variances_fini(struct ml_variances *variances) {
    ml_budget_free(
        variances->budget, variances->cells, variances->capacity * sizeof(*variances->cells)
    );
    *variances = (struct ml_variances){.budget = variances->budget};
}

enum ml_status ml_variances_reserve(struct ml_variances *variances, uint32_t count) {
    const uint32_t old = variances->capacity;
    if (count <= old) {
        return ML_OK;
    }
    uint32_t capacity = old < CELLS_MIN ? CELLS_MIN : old + old / 2;
    capacity = capacity < count ? count : capacity;
    struct ml_cell_variances *cells = ml_budget_resize(
        variances->budget, variances->cells, old * sizeof(*cells), capacity * sizeof(*cells)
    );
    if (cells == NULL) {
        return ML_ENV_MEMORY;
    }
    memset(cells + old, 0, (capacity - old) * sizeof(*cells));
    variances->cells = cells;
    variances->capacity = capacity;
    return ML_OK;
}

struct ml_variance_pair ml_variance_of(const struct ml_live_block *block) {
    return (struct ml_variance_pair){
        .bytes = (ml_variance)block->weight_bytes * (block->weight_bytes - block->size_bytes),
        .blocks = (ml_variance)block->weight_blocks * (block->weight_blocks - 1),
    };
}

void ml_variance_add(struct ml_variance_pair *sum, struct ml_variance_pair one) {
    sum->bytes += one.bytes;
    sum->blocks += one.blocks;
}

void ml_variance_take(struct ml_variance_pair *sum, struct ml_variance_pair one) {
    sum->bytes -= one.bytes;
    sum->blocks -= one.blocks;
}

uint64_t ml_variance_error(ml_variance variance) {
    if (variance >> (128 - ERROR_SHIFT) != 0) {
        return UINT64_MAX;
    }
    /* Digit by digit, from the highest power of four. */
    ml_variance rest = variance << ERROR_SHIFT;
    ml_variance root = 0;
    for (ml_variance bit = (ml_variance)1 << 126; bit != 0; bit >>= 2) {
        const ml_variance trial = root + bit;
        root >>= 1;
        if (rest >= trial) {
            rest -= trial;
            root += bit;
        }
    }
    return (uint64_t)root;
}
