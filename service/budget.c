#include "service/budget.h"

#include <stdlib.h>

void *ml_budget_new(struct ml_budget *budget, size_t count_bytes) {
    if (count_bytes > budget->max_bytes - budget->used_bytes) {
        return NULL;
    }
    void *block = calloc(1, count_bytes > 0 ? count_bytes : 1);
    if (block != NULL) {
        budget->used_bytes += count_bytes;
    }
    return block;
}

void *
ml_budget_resize(struct ml_budget *budget, void *take_block, size_t old_bytes, size_t new_bytes) {
    if (new_bytes > old_bytes && new_bytes - old_bytes > budget->max_bytes - budget->used_bytes) {
        return NULL;
    }
    void *block = realloc(take_block, new_bytes > 0 ? new_bytes : 1);
    if (block != NULL) {
        budget->used_bytes = budget->used_bytes - old_bytes + new_bytes;
    }
    return block;
}

void ml_budget_free(struct ml_budget *budget, void *take_block, size_t count_bytes) {
    if (take_block == NULL) {
        return;
    }
    budget->used_bytes -= count_bytes;
    free(take_block);
}
