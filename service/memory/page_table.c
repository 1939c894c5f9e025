#include "service/memory/page_table.h"

#include <stdlib.h>

enum { PAGES_MAX = 1 << 30 };

_Static_assert(sizeof(struct ml_partial_page) == 16, "a chunk's entries are 1 KiB");

enum ml_status
ml_page_table_make(struct ml_page_table *table, struct ml_budget *budget, uint64_t pages) {
    if (table->chunks != NULL) {
        return ML_OK;
    }
    if (pages > PAGES_MAX) {
        return ML_ENV_MEMORY;
    }
    const uint64_t count = pages / ML_CHUNK_PAGES + 1;
    table->chunks = ml_budget_new(budget, count * sizeof(*table->chunks));
    table->chunks_count = table->chunks != NULL ? count : 0;
    table->first_chunk = table->chunks_count; /* and behind_chunk 0: none */
    return table->chunks != NULL ? ML_OK : ML_ENV_MEMORY;
}

void ml_page_table_fini(struct ml_page_table *table, struct ml_budget *budget) {
    for (uint64_t i = table->first_chunk; i < table->behind_chunk; i++) {
        ml_budget_free(
            budget, table->chunks[i].pages, ML_CHUNK_PAGES * sizeof(*table->chunks[i].pages)
        );
    }
    ml_budget_free(budget, table->chunks, table->chunks_count * sizeof(*table->chunks));
    *table = (struct ml_page_table){0};
}

/* The bits of [first, behind) in the word of `first`. */
static uint64_t bits_of(uint64_t first, uint64_t behind) {
    const uint64_t from = first % ML_CHUNK_PAGES;
    const uint64_t count = behind - first;
    const uint64_t ones = count < ML_CHUNK_PAGES - from ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
    return ones << from;
}

static uint64_t next_word(uint64_t page) {
    return (page / ML_CHUNK_PAGES + 1) * ML_CHUNK_PAGES;
}

static void reach_chunks(struct ml_page_table *table, uint64_t first, uint64_t behind) {
    table->first_chunk = first < table->first_chunk ? first : table->first_chunk;
    table->behind_chunk = behind > table->behind_chunk ? behind : table->behind_chunk;
}

bool ml_page_table_mark(struct ml_page_table *table, uint64_t first, uint64_t behind) {
    reach_chunks(table, first / ML_CHUNK_PAGES, (behind - 1) / ML_CHUNK_PAGES + 1);
    for (; first < behind; first = next_word(first)) {
        uint64_t *marks = &table->chunks[first / ML_CHUNK_PAGES].marks;
        const uint64_t bits = bits_of(first, behind);
        if ((*marks & bits) != 0) {
            return false;
        }
        *marks |= bits;
    }
    return true;
}

bool ml_page_table_fill(struct ml_page_table *table, struct ml_budget *budget, uint64_t chunk) {
    struct ml_partial_page *pages = ml_budget_new(budget, ML_CHUNK_PAGES * sizeof(*pages));
    table->chunks[chunk].pages = pages;
    reach_chunks(table, chunk, chunk + 1);
    return pages != NULL;
}

/* The first page in [first, behind) whose mark is that one; `behind`: there is none. */
static uint64_t
find(const struct ml_page_table *table, uint64_t first, uint64_t behind, bool is_marked) {
    for (; first < behind; first = next_word(first)) {
        const uint64_t marks = table->chunks[first / ML_CHUNK_PAGES].marks;
        const uint64_t bits = (is_marked ? marks : ~marks) & bits_of(first, behind);
        if (bits != 0) {
            return first / ML_CHUNK_PAGES * ML_CHUNK_PAGES + (unsigned)__builtin_ctzll(bits);
        }
    }
    return behind;
}

bool ml_page_table_run(const struct ml_page_table *table, uint64_t *first, uint64_t *behind) {
    const uint64_t known_first = table->first_chunk * ML_CHUNK_PAGES;
    const uint64_t known_end = table->behind_chunk * ML_CHUNK_PAGES;
    const uint64_t end = *behind < known_end ? *behind : known_end;
    *first = *first > known_first ? *first : known_first;
    if (table->chunks == NULL || *first >= end) {
        return false;
    }
    *first = find(table, *first, end, true);
    *behind = find(table, *first, end, false);
    return *first < end;
}
