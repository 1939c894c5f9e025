/* A block's parts by mappings and pages, for whoever lays blocks over them. Room: service.
 * Context: one thread; pure.
 *
 * One rule: both walks over all blocks see the same parts. */
#ifndef MEMLOG_SERVICE_MEMORY_BLOCK_WALK_H
#define MEMLOG_SERVICE_MEMORY_BLOCK_WALK_H

#include "service/memory/overlay.h"

/* A part of a page, or whole pages, of a block in one region. */
struct ml_block_part {
    uint32_t region;
    uint32_t cell;
    uint64_t page;   /* of that region */
    uint32_t offset; /* in the page */
    uint32_t bytes;
};

/* What a block has of a region, split into what it has of its first page, of its last one, and the
 * pages between, [first, behind). */
struct ml_block_split {
    struct ml_block_part ends[2];
    uint32_t ends_count;
    uint32_t region;
    uint64_t first, behind;
};

/* The block's next piece, in one region. */
struct ml_block_walk {
    uint64_t at, end;
    uint32_t region;
};

/* The usual block, within one page of a mapping near that of the block before: the walk is not
 * needed. False: it may be another one. */
static inline bool ml_block_is_in_page(
    const struct ml_overlay *overlay,
    uint64_t address,
    uint64_t bytes,
    uint32_t cell,
    struct ml_block_part *out_part
) {
    if (overlay->near_region == overlay->regions_count) {
        return false;
    }
    const struct memlog_service_memory_region *region =
        &overlay->view->regions.items[overlay->near_region];
    const uint64_t at = address - region->start; /* of one before it: beyond its end */
    if (at >= region->end - region->start || bytes == 0 ||
        bytes >= ML_PAGE_BYTES - at % ML_PAGE_BYTES) {
        return false;
    }
    *out_part = (struct ml_block_part
    ){.region = overlay->near_region,
      .cell = cell,
      .page = at / ML_PAGE_BYTES,
      .offset = (uint32_t)(at % ML_PAGE_BYTES),
      .bytes = (uint32_t)bytes};
    return true;
}

/* The mapping in which it begins, or the next one, is near from then on. */
struct ml_block_walk ml_block_walk_of(struct ml_overlay *overlay, uint64_t address, uint64_t bytes);

/* Whether the block begins in the region that the walk is at. */
bool ml_block_walk_is_at_home(const struct ml_overlay *overlay, const struct ml_block_walk *walk);

/* What the block has of the walk's region, which is then one further. False: it has no more. */
bool ml_block_walk_next(
    const struct ml_overlay *overlay,
    struct ml_block_walk *walk,
    uint32_t cell,
    struct ml_block_split *out_split
);

#endif
