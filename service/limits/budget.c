#include "service/limits/budget.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    /* Two cache lines, which processors fetch together. */
    TABLE_ALIGNMENT_BYTES = 128,
    /* From here on a table has pages of its own, which the kernel can move instead of copying. */
    MAPPED_TABLE_BYTES = 128 << 10
};

static void put_back_here(struct ml_budget *budget, size_t count_bytes) {
    atomic_fetch_sub_explicit(&budget->used_bytes, count_bytes, memory_order_relaxed);
}

static void put_back(struct ml_budget *budget, size_t count_bytes) {
    put_back_here(budget, count_bytes);
    if (budget->whole != NULL) {
        put_back_here(budget->whole, count_bytes);
    }
}

static void refused(struct ml_budget *budget, bool over) {
    atomic_store_explicit(&budget->over, over, memory_order_relaxed);
}

static bool take_here(struct ml_budget *budget, size_t count_bytes) {
    uint64_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
    do {
        if (used > budget->max_bytes || count_bytes > budget->max_bytes - used) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &budget->used_bytes, &used, used + count_bytes, memory_order_relaxed, memory_order_relaxed
    ));
    return true;
}

/* Count them in, if there is so much left, here and in the whole. */
static bool take(struct ml_budget *budget, size_t count_bytes) {
    if (count_bytes == 0) {
        return true; /* what is too much already may shrink */
    }
    if (!take_here(budget, count_bytes)) {
        refused(budget, true);
        return false;
    }
    if (budget->whole != NULL && !take_here(budget->whole, count_bytes)) {
        put_back_here(budget, count_bytes);
        refused(budget, false);
        return false;
    }
    return true;
}

static uint64_t left_here(const struct ml_budget *budget) {
    const uint64_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
    return used < budget->max_bytes ? budget->max_bytes - used : 0;
}

uint64_t ml_budget_left(const struct ml_budget *budget) {
    const uint64_t here = left_here(budget);
    const uint64_t whole = budget->whole != NULL ? left_here(budget->whole) : UINT64_MAX;
    return here < whole ? here : whole;
}

bool ml_budget_count_in(struct ml_budget *budget, size_t count_bytes) {
    return take(budget, count_bytes);
}

void ml_budget_count_out(struct ml_budget *budget, size_t count_bytes) {
    put_back(budget, count_bytes);
}

/* What was counted in, or nothing if there is no block of it. */
static void *taken(struct ml_budget *budget, void *block, size_t count_bytes) {
    if (block == NULL) {
        put_back(budget, count_bytes);
        refused(budget, false);
    }
    return block;
}

void *ml_budget_new(struct ml_budget *budget, size_t count_bytes) {
    if (!take(budget, count_bytes)) {
        return NULL;
    }
    return taken(budget, calloc(1, count_bytes > 0 ? count_bytes : 1), count_bytes);
}

void *
ml_budget_resize(struct ml_budget *budget, void *take_block, size_t old_bytes, size_t new_bytes) {
    const size_t more = new_bytes > old_bytes ? new_bytes - old_bytes : 0;
    if (!take(budget, more)) {
        return NULL;
    }
    void *block = taken(budget, realloc(take_block, new_bytes > 0 ? new_bytes : 1), more);
    if (block != NULL && new_bytes < old_bytes) {
        put_back(budget, old_bytes - new_bytes);
    }
    return block;
}

void ml_budget_free(struct ml_budget *budget, void *take_block, size_t count_bytes) {
    if (take_block == NULL) {
        return;
    }
    put_back(budget, count_bytes);
    free(take_block);
}

bool ml_budget_reach(
    struct ml_budget *budget, void *table, uint32_t *count, uint32_t index, uint32_t limit
) {
    void ***const entries = table;
    if (index < *count) {
        return true;
    }
    uint32_t wanted = *count * 2 <= index ? index + 1 : *count * 2;
    wanted = wanted > limit ? limit : wanted;
    void **grown =
        ml_budget_resize(budget, *entries, *count * sizeof(void *), wanted * sizeof(void *));
    if (grown == NULL) {
        return false;
    }
    memset(grown + *count, 0, (wanted - *count) * sizeof(void *));
    *entries = grown;
    *count = wanted;
    return true;
}

void *ml_budget_entry(
    struct ml_budget *budget,
    void *table,
    uint32_t *count,
    uint32_t index,
    uint32_t limit,
    size_t entry_bytes
) {
    void ***const entries = table;
    if (!ml_budget_reach(budget, table, count, index, limit)) {
        return NULL;
    }
    if ((*entries)[index] == NULL) {
        (*entries)[index] = ml_budget_new(budget, entry_bytes);
    }
    return (*entries)[index];
}

/* What is mapped for a table: a huge one ends with a huge page, so that whatever is touched of it
 * is on one. */
static size_t mapped_bytes(size_t count_bytes) {
    return count_bytes < ML_HUGE_TABLE_BYTES
               ? count_bytes
               : (count_bytes + ML_HUGE_PAGE_BYTES - 1) / ML_HUGE_PAGE_BYTES * ML_HUGE_PAGE_BYTES;
}

static void *map(size_t count_bytes) {
    void *map = mmap(NULL, count_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* Whole huge pages: more than asked for, and what is too much at both ends given back. */
static void *map_huge(size_t count_bytes) {
    char *const first = map(count_bytes + ML_HUGE_PAGE_BYTES);
    if (first == NULL) {
        return NULL;
    }
    const size_t before_bytes = -(uintptr_t)first % ML_HUGE_PAGE_BYTES;
    char *const table = first + before_bytes;
    if (before_bytes > 0) {
        (void)munmap(first, before_bytes);
    }
    (void)munmap(table + count_bytes, ML_HUGE_PAGE_BYTES - before_bytes);
    /* A kernel without huge pages refuses: small ones do as well, slower. */
    (void)madvise(table, count_bytes, MADV_HUGEPAGE);
    return table;
}

static void *map_table(size_t count_bytes) {
    if (count_bytes > SIZE_MAX / 2) {
        return NULL;
    }
    return count_bytes < ML_HUGE_TABLE_BYTES ? map(count_bytes)
                                             : map_huge(mapped_bytes(count_bytes));
}

/* The kernel moves the pages: nothing is copied, and nothing is there twice. A table that is not
 * huge yet is copied to where it can be. NULL when refused. */
static void *move_table(void *take_table, size_t old_bytes, size_t new_bytes) {
    if (old_bytes < ML_HUGE_TABLE_BYTES && new_bytes < ML_HUGE_TABLE_BYTES) {
        void *moved = mremap(take_table, old_bytes, new_bytes, MREMAP_MAYMOVE);
        return moved == MAP_FAILED ? NULL : moved;
    }
    if (mapped_bytes(old_bytes) == mapped_bytes(new_bytes)) {
        return take_table;
    }
    void *const place = map_table(new_bytes);
    if (place == NULL) {
        return NULL;
    }
    if (old_bytes < ML_HUGE_TABLE_BYTES) {
        memcpy(place, take_table, old_bytes);
        (void)munmap(take_table, old_bytes);
        return place;
    }
    void *moved = mremap(
        take_table,
        mapped_bytes(old_bytes),
        mapped_bytes(new_bytes),
        MREMAP_MAYMOVE | MREMAP_FIXED,
        place
    );
    if (moved == MAP_FAILED) {
        (void)munmap(place, mapped_bytes(new_bytes));
        return NULL;
    }
    return moved;
}

void *ml_budget_new_table(struct ml_budget *budget, size_t count_bytes) {
    if (!take(budget, count_bytes)) {
        return NULL;
    }
    void *table = NULL;
    if (count_bytes >= MAPPED_TABLE_BYTES) {
        table = map_table(count_bytes);
    } else {
        const size_t units = (count_bytes + TABLE_ALIGNMENT_BYTES - 1) / TABLE_ALIGNMENT_BYTES;
        table =
            aligned_alloc(TABLE_ALIGNMENT_BYTES, (units > 0 ? units : 1) * TABLE_ALIGNMENT_BYTES);
        if (table != NULL) {
            memset(table, 0, count_bytes);
        }
    }
    return taken(budget, table, count_bytes);
}

void *ml_budget_grow_table(
    struct ml_budget *budget, void *take_table, size_t old_bytes, size_t new_bytes
) {
    if (old_bytes >= MAPPED_TABLE_BYTES) {
        if (!take(budget, new_bytes - old_bytes)) {
            return NULL;
        }
        return taken(budget, move_table(take_table, old_bytes, new_bytes), new_bytes - old_bytes);
    }
    void *table = ml_budget_new_table(budget, new_bytes);
    if (table != NULL && take_table != NULL) {
        memcpy(table, take_table, old_bytes);
        ml_budget_free_table(budget, take_table, old_bytes);
    }
    return table;
}

void *ml_budget_shrink_table(
    struct ml_budget *budget, void *take_table, size_t old_bytes, size_t new_bytes
) {
    if (new_bytes >= MAPPED_TABLE_BYTES) {
        const size_t old_mapped_bytes = mapped_bytes(old_bytes);
        void *kept = take_table;
        if (mapped_bytes(new_bytes) < old_mapped_bytes) {
            kept = mremap(take_table, old_mapped_bytes, mapped_bytes(new_bytes), MREMAP_MAYMOVE);
        }
        put_back(budget, kept == MAP_FAILED ? 0 : old_bytes - new_bytes);
        return kept == MAP_FAILED ? NULL : kept;
    }
    void *table = ml_budget_new_table(budget, new_bytes);
    if (table != NULL) {
        memcpy(table, take_table, new_bytes);
        ml_budget_free_table(budget, take_table, old_bytes);
    }
    return table;
}

void ml_budget_free_table(struct ml_budget *budget, void *take_table, size_t count_bytes) {
    if (take_table == NULL) {
        return;
    }
    put_back(budget, count_bytes);
    if (count_bytes >= MAPPED_TABLE_BYTES) {
        (void)munmap(take_table, mapped_bytes(count_bytes));
    } else {
        free(take_table);
    }
}
