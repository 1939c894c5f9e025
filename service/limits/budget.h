/* Memory with a bound, for everything that grows with what clients send: each client's is a part of
 * the session's. Room: service. Context: any thread; a block belongs to the one that works on its
 * client.
 *
 * One rule: every block is given back with the size that it was taken with. */
#ifndef MEMLOG_SERVICE_LIMITS_BUDGET_H
#define MEMLOG_SERVICE_LIMITS_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

struct ml_budget {
    _Atomic uint64_t used_bytes; /* relaxed: a sum, and nothing is told by it */
    uint64_t max_bytes;          /* set once before use; UINT64_MAX: no bound */
    struct ml_budget *whole;     /* what it is a part of, itself no part; NULL: of nothing */
    _Atomic bool over;           /* relaxed: what was refused last was refused by max_bytes here */
};

/* count_bytes of zeros. NULL when budget or system refuse. */
void *ml_budget_new(struct ml_budget *budget, size_t count_bytes);

/* A larger (or smaller) block with the old one's content; what is new is not cleared. NULL when
 * refused: the old block stays as it is. take_block may be NULL with old_bytes 0. */
void *
ml_budget_resize(struct ml_budget *budget, void *take_block, size_t old_bytes, size_t new_bytes);

/* A table of pointers, *table with *count entries, that reaches `index`; at most `limit` entries.
 * New ones are NULL. It doubles at least, so that rising indices cost no copy each. False when
 * refused: it stays as it is. `table` is the address of the pointer to the first entry. */
bool ml_budget_reach(
    struct ml_budget *budget, void *table, uint32_t *count, uint32_t index, uint32_t limit
);

/* The entry at `index` of such a table: a block of entry_bytes, of zeros if it is new. NULL when
 * refused. */
void *ml_budget_entry(
    struct ml_budget *budget,
    void *table,
    uint32_t *count,
    uint32_t index,
    uint32_t limit,
    size_t entry_bytes
);

enum {
    ML_HUGE_PAGE_BYTES = 2 << 20, /* of x86-64 and arm64 */
    /* From here on the processor would have to walk the page tables for look-ups in small pages. */
    ML_HUGE_TABLE_BYTES = 4 << 20
};

/* A table of count_bytes of zeros, at the start of two cache lines, which is read and written all
 * over: a huge one, of whole huge pages best, asks the kernel for those. NULL when refused. To be
 * given back by ml_budget_free_table alone. */
void *ml_budget_new_table(struct ml_budget *budget, size_t count_bytes);

/* A larger table with the old one's content and zeros behind it; NULL when refused: the old one
 * stays. take_table may be NULL with old_bytes 0. */
void *ml_budget_grow_table(
    struct ml_budget *budget, void *take_table, size_t old_bytes, size_t new_bytes
);
/* A smaller table with the old one's first bytes: what is behind them is given back. NULL when
 * there is no memory for that: the old one stays. */
void *ml_budget_shrink_table(
    struct ml_budget *budget, void *take_table, size_t old_bytes, size_t new_bytes
);
void ml_budget_free_table(struct ml_budget *budget, void *take_table, size_t count_bytes);

/* Count in what came from elsewhere; false: refused. It is counted out with the same size. */
ML_NODISCARD bool ml_budget_count_in(struct ml_budget *budget, size_t count_bytes);
void ml_budget_count_out(struct ml_budget *budget, size_t count_bytes);

/* What may still be taken: the lesser of what is left here and in the whole. */
uint64_t ml_budget_left(const struct ml_budget *budget);

/* Give back; NULL is allowed. */
void ml_budget_free(struct ml_budget *budget, void *take_block, size_t count_bytes);

#endif
