/* The pages of one mapping on which live blocks lie, and how full those are that no block covers as
 * a whole. Room: service. Context: one thread; no I/O.
 *
 * One rule: memory grows with the blocks, never with the mapping: a chunk of pages gets its entries
 * when a block begins or ends on one of them, and all of it counts against a budget. */
#ifndef MEMLOG_SERVICE_MEMORY_PAGE_TABLE_H
#define MEMLOG_SERVICE_MEMORY_PAGE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/limits/budget.h"

enum {
    ML_PAGE_BYTES = 4096,
    ML_CHUNK_PAGES = 64, /* a bit each in a word; their entries are 1 KiB */
};

/* A page on which blocks begin or end. Units: bytes, of this page. */
struct ml_partial_page {
    uint32_t cell;                        /* of its lowest block */
    uint16_t private_bytes, shared_bytes; /* resident */
    uint16_t used_bytes;                  /* of blocks; 0: none begins or ends here */
    uint16_t held_bytes;                  /* of blocks, resident */
    uint16_t given_bytes;                 /* of the resident rest, to the other blocks */
    uint16_t lowest : 12;                 /* where its lowest block begins */
    uint16_t has_cells : 1;               /* blocks of several cells lie here */
    uint16_t has_nodes : 1;               /* and of several stacks */
};

static inline uint64_t ml_partial_page_resident(const struct ml_partial_page *page) {
    return (uint64_t)page->private_bytes + page->shared_bytes;
}

struct ml_page_chunk {
    uint64_t marks;                /* a bit for each page on which a block lies */
    struct ml_partial_page *pages; /* NULL: none of them is partial */
};

struct ml_page_table {
    struct ml_page_chunk *chunks; /* NULL: no block lies in the mapping */
    uint64_t chunks_count;
    uint64_t first_chunk, behind_chunk; /* all others are empty: most of a huge mapping */
};

/* A table for so many pages, unless there is one. Errors: ML_ENV_MEMORY: also for a mapping of more
 * than 4 TiB. */
ML_NODISCARD enum ml_status
ml_page_table_make(struct ml_page_table *table, struct ml_budget *budget, uint64_t pages);
void ml_page_table_fini(struct ml_page_table *table, struct ml_budget *budget);

static inline bool ml_page_table_is_marked(const struct ml_page_table *table, uint64_t page) {
    return (table->chunks[page / ML_CHUNK_PAGES].marks >> page % ML_CHUNK_PAGES & 1) != 0;
}

/* Mark the pages [first, behind), first < behind. False: one of them is marked, and some of the
 * others are now. */
ML_NODISCARD bool ml_page_table_mark(struct ml_page_table *table, uint64_t first, uint64_t behind);

/* Entries for a chunk that has none. False: the budget refuses. */
ML_NODISCARD bool
ml_page_table_fill(struct ml_page_table *table, struct ml_budget *budget, uint64_t chunk);

/* The entry of a page, of zeros if it is new. NULL: the budget refuses. */
static inline struct ml_partial_page *
ml_page_table_reach(struct ml_page_table *table, struct ml_budget *budget, uint64_t page) {
    struct ml_page_chunk *chunk = &table->chunks[page / ML_CHUNK_PAGES];
    return chunk->pages != NULL || ml_page_table_fill(table, budget, page / ML_CHUNK_PAGES)
               ? &chunk->pages[page % ML_CHUNK_PAGES]
               : NULL;
}

/* The entry of a page; NULL: there is none. */
static inline struct ml_partial_page *
ml_page_table_find(const struct ml_page_table *table, uint64_t page) {
    if (page / ML_CHUNK_PAGES >= table->chunks_count) {
        return NULL;
    }
    struct ml_partial_page *pages = table->chunks[page / ML_CHUNK_PAGES].pages;
    return pages != NULL ? &pages[page % ML_CHUNK_PAGES] : NULL;
}

/* The first run of marked pages in [*first, *behind), which is then there. False: no page of them
 * is marked. */
ML_NODISCARD bool
ml_page_table_run(const struct ml_page_table *table, uint64_t *first, uint64_t *behind);

#endif
