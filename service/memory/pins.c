/* Which cells' blocks keep which pages: the second walk over all blocks, and what it leaves. */
#include <stdlib.h>

#include "service/memory/block_walk.h"
#include "service/memory/overlay.h"

/* Steps of ml_overlay_settle, each of a page or of a chunk without entries: some 10 us. */
enum { STEPS_A_SETTLE = 4096 };

static void share_part(struct ml_overlay *overlay, const struct ml_block_part *part) {
    struct ml_partial_page *page = ml_page_table_find(&overlay->tables[part->region], part->page);
    if (page == NULL || page->has_cells == 0 || part->offset == page->lowest) {
        return; /* ml_overlay_settle gives the rest to the cell of the lowest block */
    }
    /* Both are of a page: the product fits. */
    const uint32_t rest = (uint32_t)ml_partial_page_resident(page) - page->held_bytes;
    const uint32_t by_bytes = rest * part->bytes / page->used_bytes;
    const uint32_t left = rest - page->given_bytes;
    const uint32_t share = by_bytes < left ? by_bytes : left;
    page->given_bytes = (uint16_t)(page->given_bytes + share);
    overlay->cells[part->cell].waste_bytes += share;
}

void ml_overlay_share(struct ml_overlay *overlay, uint64_t address, uint64_t bytes, uint32_t cell) {
    struct ml_block_part part;
    struct ml_block_split split;
    if (cell >= overlay->cells_count) {
        return;
    }
    if (ml_block_is_in_page(overlay, address, bytes, cell, &part)) {
        share_part(overlay, &part);
        return;
    }
    struct ml_block_walk walk = ml_block_walk_of(overlay, address, bytes);
    const bool is_laid = ml_block_walk_is_at_home(overlay, &walk);
    while (is_laid && ml_block_walk_next(overlay, &walk, cell, &split)) {
        for (uint32_t i = 0; i < split.ends_count; i++) {
            share_part(overlay, &split.ends[i]);
        }
    }
}

static void settle_chunk(struct ml_overlay *overlay, const struct ml_page_chunk *chunk) {
    for (uint32_t i = 0; chunk->pages != NULL && i < ML_CHUNK_PAGES; i++) {
        const struct ml_partial_page *page = &chunk->pages[i];
        if (page->used_bytes > 0) {
            struct ml_cell_memory *memory = &overlay->cells[page->cell];
            memory->waste_bytes +=
                ml_partial_page_resident(page) - page->held_bytes - page->given_bytes;
            memory->alone_bytes += page->has_nodes == 0 ? ml_partial_page_resident(page) : 0;
        }
    }
}

/* Settle the next chunk of the region at hand; the steps that it took. */
static uint32_t settle_next(struct ml_overlay *overlay) {
    const struct ml_page_table *table = &overlay->tables[overlay->settled_regions];
    const uint64_t at =
        overlay->settled_chunks > table->first_chunk ? overlay->settled_chunks : table->first_chunk;
    if (at >= table->behind_chunk) {
        overlay->settled_regions++;
        overlay->settled_chunks = 0;
        return 1;
    }
    settle_chunk(overlay, &table->chunks[at]);
    overlay->settled_chunks = at + 1;
    return table->chunks[at].pages != NULL ? ML_CHUNK_PAGES : 1;
}

bool ml_overlay_settle(struct ml_overlay *overlay) {
    uint32_t steps = 0;
    while (steps < STEPS_A_SETTLE && overlay->settled_regions < overlay->regions_count) {
        steps += settle_next(overlay);
    }
    return overlay->settled_regions < overlay->regions_count;
}

static bool has_memory(const struct ml_cell_memory *memory) {
    return memory->bytes.private + memory->bytes.shared + memory->waste_bytes > 0;
}

/* The cells with resident blocks alone: most of a process's cells have none. */
static struct ml_cell_memory *pack(const struct ml_overlay *overlay, uint32_t *out_count) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < overlay->cells_count; i++) {
        count += has_memory(&overlay->cells[i]) ? 1 : 0;
    }
    struct ml_cell_memory *packed = malloc(((size_t)count + 1) * sizeof(*packed));
    *out_count = 0;
    for (uint32_t i = 0; packed != NULL && i < overlay->cells_count; i++) {
        if (has_memory(&overlay->cells[i])) {
            packed[*out_count] = overlay->cells[i];
            packed[(*out_count)++].cell = i;
        }
    }
    return packed;
}

void ml_overlay_end(struct ml_overlay *overlay) {
    uint32_t count = 0;
    if (overlay->tables == NULL) {
        return;
    }
    for (uint32_t i = 0; i < overlay->regions_count; i++) {
        ml_page_table_fini(&overlay->tables[i], overlay->budget);
    }
    free(overlay->tables);
    overlay->tables = NULL;
    const bool is_settled = overlay->settled_regions == overlay->regions_count;
    struct ml_cell_memory *packed = is_settled ? pack(overlay, &count) : NULL;
    ml_budget_free(
        overlay->budget, overlay->cells, (size_t)overlay->cells_count * sizeof(*overlay->cells)
    );
    overlay->cells = packed;
    overlay->cells_count = count;
    overlay->has_cells = packed != NULL;
}

uint64_t ml_overlay_bytes(const struct ml_overlay *overlay) {
    return overlay->heaps == NULL
               ? 0
               : (uint64_t)overlay->view->regions.count * sizeof(*overlay->heaps) +
                     (uint64_t)overlay->cells_count * sizeof(*overlay->cells);
}
