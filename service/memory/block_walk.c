#include "service/memory/block_walk.h"

/* The first region that ends behind the address. */
static uint32_t region_at(const struct ml_overlay *overlay, uint64_t address) {
    uint32_t low = 0;
    uint32_t high = overlay->regions_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (overlay->view->regions.items[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

static void
add_end(struct ml_block_split *split, uint32_t region, uint32_t cell, uint64_t from, uint64_t to) {
    split->ends[split->ends_count++] = (struct ml_block_part
    ){.region = region,
      .cell = cell,
      .page = from / ML_PAGE_BYTES,
      .offset = (uint32_t)(from % ML_PAGE_BYTES),
      .bytes = (uint32_t)(to - from)};
}

/* From `from` to `to` of the region, from < to. */
static struct ml_block_split split_of(uint32_t region, uint32_t cell, uint64_t from, uint64_t to) {
    struct ml_block_split split = {
        .region = region,
        .first = (from + ML_PAGE_BYTES - 1) / ML_PAGE_BYTES,
        .behind = to / ML_PAGE_BYTES};
    if (split.first > split.behind) { /* all of it is within a page */
        add_end(&split, region, cell, from, to);
        split.first = split.behind;
        return split;
    }
    if (from % ML_PAGE_BYTES != 0) {
        add_end(&split, region, cell, from, split.first * ML_PAGE_BYTES);
    }
    if (to % ML_PAGE_BYTES != 0) {
        add_end(&split, region, cell, split.behind * ML_PAGE_BYTES, to);
    }
    return split;
}

bool ml_block_walk_is_at_home(const struct ml_overlay *overlay, const struct ml_block_walk *walk) {
    return walk->region < overlay->regions_count &&
           overlay->view->regions.items[walk->region].start <= walk->at;
}

struct ml_block_walk
ml_block_walk_of(struct ml_overlay *overlay, uint64_t address, uint64_t bytes) {
    overlay->near_region = region_at(overlay, address);
    return (struct ml_block_walk
    ){.at = address,
      .end = bytes <= UINT64_MAX - address ? address + bytes : UINT64_MAX,
      .region = overlay->near_region};
}

bool ml_block_walk_next(
    const struct ml_overlay *overlay,
    struct ml_block_walk *walk,
    uint32_t cell,
    struct ml_block_split *out_split
) {
    if (walk->region == overlay->regions_count) {
        return false;
    }
    const struct memlog_service_memory_region *region = &overlay->view->regions.items[walk->region];
    const uint64_t from = region->start > walk->at ? region->start : walk->at;
    const uint64_t to = least(region->end, walk->end);
    if (from >= to) {
        return false;
    }
    *out_split = split_of(walk->region, cell, from - region->start, to - region->start);
    walk->region++;
    return true;
}
