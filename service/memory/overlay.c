#include "service/memory/overlay.h"

#include <stdlib.h>

#include "service/memory/block_walk.h"

enum ml_status ml_overlay_init(
    struct ml_overlay *overlay,
    const struct memlog_service_process_view *view,
    struct ml_budget *budget,
    uint32_t cells_count
) {
    const size_t regions = (size_t)view->regions.count + 1;
    *overlay = (struct ml_overlay
    ){.view = view,
      .budget = budget,
      .regions_count = view->regions.count,
      .pages_left = ML_OVERLAY_PAGES_MAX};
    while (overlay->regions_count > 0 && view->regions.items[overlay->regions_count - 1].end == 0) {
        overlay->regions_count--; /* the one of all that had no room */
    }
    overlay->near_region = overlay->regions_count;
    overlay->heaps = calloc(regions, sizeof(*overlay->heaps));
    overlay->tables = calloc(regions, sizeof(*overlay->tables));
    if (overlay->heaps != NULL && overlay->tables != NULL) {
        overlay->cells = ml_budget_new(budget, (size_t)cells_count * sizeof(*overlay->cells));
    }
    if (overlay->cells == NULL) {
        ml_overlay_fini(overlay);
        return ML_ENV_MEMORY;
    }
    overlay->cells_count = cells_count;
    return ML_OK;
}

void ml_overlay_fini(struct ml_overlay *overlay) {
    ml_overlay_end(overlay);
    free(overlay->heaps);
    free(overlay->cells);
    *overlay = (struct ml_overlay){0};
}

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

static uint64_t page_start(const struct ml_overlay *overlay, uint32_t region, uint64_t page) {
    return overlay->view->regions.items[region].start + page * ML_PAGE_BYTES;
}

static void add_resident(
    const struct ml_overlay *overlay,
    struct ml_resident *sum,
    uint32_t region,
    uint64_t start,
    uint64_t end
) {
    ml_resident_add(sum, overlay->view, &overlay->view->regions.items[region], start, end);
}

/* The first block on a page: what of it is resident? False: it lies on too many pages. */
static bool open_page(
    struct ml_overlay *overlay, struct ml_partial_page *page, const struct ml_block_part *part
) {
    struct ml_resident sum = {0};
    const uint64_t start = page_start(overlay, part->region, part->page);
    if (overlay->pages_left == 0 ||
        !ml_page_table_mark(&overlay->tables[part->region], part->page, part->page + 1)) {
        return false;
    }
    overlay->pages_left--;
    add_resident(overlay, &sum, part->region, start, start + ML_PAGE_BYTES);
    overlay->heaps[part->region].pages.private += sum.private;
    overlay->heaps[part->region].pages.shared += sum.shared;
    page->private_bytes = (uint16_t)sum.private;
    page->shared_bytes = (uint16_t)sum.shared;
    page->cell = part->cell;
    page->lowest = part->offset & (ML_PAGE_BYTES - 1U);
    return true;
}

static void join_page(
    const struct ml_overlay *overlay, struct ml_partial_page *page, const struct ml_block_part *part
) {
    if (page->cell != part->cell) {
        page->has_cells = 1;
        page->has_nodes |=
            overlay->cells[page->cell].node != overlay->cells[part->cell].node ? 1 : 0;
    }
    if (part->offset < page->lowest) {
        page->lowest = part->offset & (ML_PAGE_BYTES - 1U);
        page->cell = part->cell;
    }
}

/* Blocks that lie over each other, since a free was missed, hold a page no more than once. */
static bool add_part(struct ml_overlay *overlay, const struct ml_block_part *part) {
    struct ml_page_table *table = &overlay->tables[part->region];
    struct ml_partial_page *page = ml_page_table_reach(table, overlay->budget, part->page);
    if (page == NULL) {
        return false;
    }
    if (page->used_bytes == 0 && ml_page_table_is_marked(table, part->page)) {
        return true; /* another block covers all of it */
    }
    if (page->used_bytes == 0 && !open_page(overlay, page, part)) {
        return false;
    }
    join_page(overlay, page, part);
    const uint64_t bytes = least(part->bytes, ML_PAGE_BYTES - page->used_bytes);
    const struct ml_resident held = {
        .private = bytes * page->private_bytes / ML_PAGE_BYTES,
        .shared = bytes * page->shared_bytes / ML_PAGE_BYTES};
    page->used_bytes = (uint16_t)(page->used_bytes + bytes);
    page->held_bytes = (uint16_t)(page->held_bytes + held.private + held.shared);
    overlay->heaps[part->region].bytes.private += held.private;
    overlay->heaps[part->region].bytes.shared += held.shared;
    overlay->cells[part->cell].bytes.private += held.private;
    overlay->cells[part->cell].bytes.shared += held.shared;
    return true;
}

/* Pages that a block covers as a whole, as no other does. */
static bool add_whole(
    struct ml_overlay *overlay, uint32_t region, uint32_t cell, uint64_t first, uint64_t behind
) {
    struct ml_resident sum = {0};
    if (behind - first > overlay->pages_left ||
        !ml_page_table_mark(&overlay->tables[region], first, behind)) {
        return false;
    }
    overlay->pages_left -= behind - first;
    add_resident(
        overlay,
        &sum,
        region,
        page_start(overlay, region, first),
        page_start(overlay, region, behind)
    );
    struct ml_region_heap *heap = &overlay->heaps[region];
    struct ml_cell_memory *memory = &overlay->cells[cell];
    heap->pages.private += sum.private;
    heap->pages.shared += sum.shared;
    heap->bytes.private += sum.private;
    heap->bytes.shared += sum.shared;
    memory->bytes.private += sum.private;
    memory->bytes.shared += sum.shared;
    memory->alone_bytes += sum.private + sum.shared;
    return true;
}

/* A table for the region's pages, for the first block in it. */
static bool open_region(struct ml_overlay *overlay, uint32_t number) {
    const struct memlog_service_memory_region *region = &overlay->view->regions.items[number];
    const uint64_t pages = (region->end - region->start) / ML_PAGE_BYTES;
    overlay->is_estimated = overlay->is_estimated || ml_resident_is_estimated(region);
    return ml_page_table_make(&overlay->tables[number], overlay->budget, pages) == ML_OK;
}

static bool has_region(struct ml_overlay *overlay, uint32_t number) {
    return overlay->tables[number].chunks != NULL || open_region(overlay, number);
}

/* Add what a block has of one region. */
static bool
add_split(struct ml_overlay *overlay, uint32_t cell, const struct ml_block_split *split) {
    bool is_fine = has_region(overlay, split->region);
    for (uint32_t i = 0; is_fine && i < split->ends_count; i++) {
        is_fine = add_part(overlay, &split->ends[i]);
    }
    return is_fine && (split->first == split->behind ||
                       add_whole(overlay, split->region, cell, split->first, split->behind));
}

static void begin_block(
    struct ml_overlay *overlay, uint32_t region, uint64_t bytes, uint32_t cell, uint32_t node
) {
    overlay->cells[cell].node = node;
    overlay->heaps[region].blocks++;
    overlay->heaps[region].requested_bytes += bytes;
}

bool ml_overlay_add(
    struct ml_overlay *overlay, uint64_t address, uint64_t bytes, uint32_t cell, uint32_t node
) {
    struct ml_block_part part;
    struct ml_block_split split;
    if (cell >= overlay->cells_count) {
        return false;
    }
    if (ml_block_is_in_page(overlay, address, bytes, cell, &part)) {
        begin_block(overlay, part.region, bytes, cell, node);
        return has_region(overlay, part.region) && add_part(overlay, &part);
    }
    struct ml_block_walk walk = ml_block_walk_of(overlay, address, bytes);
    if (!ml_block_walk_is_at_home(overlay, &walk)) {
        overlay->elsewhere_bytes += bytes;
        return true;
    }
    begin_block(overlay, walk.region, bytes, cell, node);
    while (ml_block_walk_next(overlay, &walk, cell, &split)) {
        if (!add_split(overlay, cell, &split)) {
            return false; /* what follows may take long */
        }
    }
    return true;
}

struct ml_resident
ml_overlay_pages(struct ml_overlay *overlay, uint32_t region, uint64_t start, uint64_t end) {
    const struct memlog_service_memory_region *of = &overlay->view->regions.items[region];
    struct ml_resident sum = {0};
    uint64_t behind = 0;
    const uint64_t pages = (end - of->start) / ML_PAGE_BYTES;
    for (uint64_t first = (start - of->start) / ML_PAGE_BYTES;; first = behind) {
        behind = pages;
        if (!ml_page_table_run(&overlay->tables[region], &first, &behind)) {
            return sum;
        }
        add_resident(
            overlay,
            &sum,
            region,
            page_start(overlay, region, first),
            page_start(overlay, region, behind)
        );
    }
}
