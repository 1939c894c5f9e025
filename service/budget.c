#include "service/budget.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CACHE_LINE_BYTES = 64,
    /* A huge page on x86-64 and arm64; a table of fewer has nothing to put on one. */
    MAPPED_TABLE_BYTES = 2 << 20
};

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

static void *map_table(size_t count_bytes) {
    void *table =
        mmap(NULL, count_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) {
        return NULL;
    }
    /* A kernel without huge pages refuses: small ones do as well, slower. */
    (void)madvise(table, count_bytes, MADV_HUGEPAGE);
    return table;
}

void *ml_budget_new_table(struct ml_budget *budget, size_t count_bytes) {
    if (count_bytes > budget->max_bytes - budget->used_bytes) {
        return NULL;
    }
    void *table = NULL;
    if (count_bytes >= MAPPED_TABLE_BYTES) {
        table = map_table(count_bytes);
    } else {
        const size_t lines = (count_bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES;
        table = aligned_alloc(CACHE_LINE_BYTES, (lines > 0 ? lines : 1) * CACHE_LINE_BYTES);
        if (table != NULL) {
            memset(table, 0, count_bytes);
        }
    }
    if (table != NULL) {
        budget->used_bytes += count_bytes;
    }
    return table;
}

void *ml_budget_grow_table(
    struct ml_budget *budget, void *take_table, size_t old_bytes, size_t new_bytes
) {
    if (old_bytes >= MAPPED_TABLE_BYTES) {
        /* The kernel moves the pages: nothing is copied, and nothing is there twice. */
        if (new_bytes - old_bytes > budget->max_bytes - budget->used_bytes) {
            return NULL;
        }
        void *moved = mremap(take_table, old_bytes, new_bytes, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED) {
            return NULL;
        }
        budget->used_bytes += new_bytes - old_bytes;
        return moved;
    }
    void *table = ml_budget_new_table(budget, new_bytes);
    if (table != NULL && take_table != NULL) {
        memcpy(table, take_table, old_bytes);
        ml_budget_free_table(budget, take_table, old_bytes);
    }
    return table;
}

void ml_budget_free_table(struct ml_budget *budget, void *take_table, size_t count_bytes) {
    if (take_table == NULL) {
        return;
    }
    budget->used_bytes -= count_bytes;
    if (count_bytes >= MAPPED_TABLE_BYTES) {
        (void)munmap(take_table, count_bytes);
    } else {
        free(take_table);
    }
}
