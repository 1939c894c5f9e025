#include "service/memory/overlay.h"

#include <stdlib.h>

enum { PAGE_BYTES = 4096, REGION_PAGES_MAX = 1 << 30 };

__extension__ typedef unsigned __int128 ml_wide_product;

enum ml_status
ml_overlay_init(struct ml_overlay *overlay, const struct memlog_service_process_view *view) {
    *overlay = (struct ml_overlay
    ){.view = view, .regions_count = view->regions.count, .pages_left = ML_OVERLAY_PAGES_MAX};
    overlay->heaps = calloc((size_t)view->regions.count + 1, sizeof(*overlay->heaps));
    overlay->marks = calloc((size_t)view->regions.count + 1, sizeof(*overlay->marks));
    while (overlay->regions_count > 0 && view->regions.items[overlay->regions_count - 1].end == 0) {
        overlay->regions_count--; /* the one of all that had no room */
    }
    if (overlay->heaps == NULL || overlay->marks == NULL) {
        ml_overlay_fini(overlay);
        return ML_ENV_MEMORY;
    }
    return ML_OK;
}

void ml_overlay_fini(struct ml_overlay *overlay) {
    ml_overlay_end(overlay);
    free(overlay->heaps);
    *overlay = (struct ml_overlay){0};
}

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

/* The first run that ends behind the address. */
static uint32_t run_at(const struct memlog_service_process_view *view, uint64_t address) {
    uint32_t low = 0;
    uint32_t high = view->pages.count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const struct memlog_service_page_run *run = &view->pages.items[middle];
        if (run->address + run->bytes <= address) {
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

static void add_by_pages(
    struct ml_resident *sum,
    const struct memlog_service_process_view *view,
    uint64_t start,
    uint64_t end
) {
    for (uint32_t i = run_at(view, start); i < view->pages.count; i++) {
        const struct memlog_service_page_run *run = &view->pages.items[i];
        if (run->address >= end) {
            return;
        }
        const uint64_t from = run->address > start ? run->address : start;
        const uint64_t bytes = least(run->address + run->bytes, end) - from;
        sum->private += run->shared ? 0 : bytes;
        sum->shared += run->shared ? bytes : 0;
    }
}

static uint64_t part_of(uint64_t bytes, uint64_t part_kb, uint64_t whole_kb) {
    return (uint64_t)((ml_wide_product)bytes * least(part_kb, whole_kb) / whole_kb);
}

/* All of the region's pages are alike, or it is not known which of them are resident. */
static void add_by_figures(
    struct ml_overlay *overlay,
    struct ml_resident *sum,
    const struct memlog_service_memory_region *region,
    uint64_t bytes
) {
    const uint64_t private_kb = region->private_clean_kb + region->private_dirty_kb;
    const uint64_t shared_kb = region->shared_clean_kb + region->shared_dirty_kb;
    if (region->size_kb == 0) {
        return;
    }
    overlay->is_estimated = overlay->is_estimated ||
                            (private_kb > 0 && private_kb < region->size_kb) ||
                            (shared_kb > 0 && shared_kb < region->size_kb);
    sum->private += part_of(bytes, private_kb, region->size_kb);
    sum->shared += part_of(bytes, shared_kb, region->size_kb);
}

/* What is resident from `start` to `end`, both in that region. */
static void add_resident(
    struct ml_overlay *overlay,
    struct ml_resident *sum,
    const struct memlog_service_memory_region *region,
    uint64_t start,
    uint64_t end
) {
    if (region->has_pages) {
        add_by_pages(sum, overlay->view, start, end);
    } else {
        add_by_figures(overlay, sum, region, end - start);
    }
}

static bool is_marked(const uint8_t *marks, uint64_t page) {
    return (marks[page / 8] >> page % 8 & 1) != 0;
}

static uint8_t *marks_of(struct ml_overlay *overlay, uint32_t i) {
    const struct memlog_service_memory_region *region = &overlay->view->regions.items[i];
    const uint64_t pages = (region->end - region->start) / PAGE_BYTES;
    if (overlay->marks[i] == NULL && pages < REGION_PAGES_MAX) {
        overlay->marks[i] = calloc(pages / 8 + 1, 1);
    }
    return overlay->marks[i];
}

/* Count the pages on which nothing lay so far. A block shares no page with others but its first and
 * its last one. */
static bool mark_pages(struct ml_overlay *overlay, uint32_t i, uint64_t start, uint64_t end) {
    const struct memlog_service_memory_region *region = &overlay->view->regions.items[i];
    uint64_t first = (start - region->start) / PAGE_BYTES;
    uint64_t behind = (end - 1 - region->start) / PAGE_BYTES + 1;
    uint8_t *marks = behind - first <= overlay->pages_left ? marks_of(overlay, i) : NULL;
    if (marks == NULL) {
        return false;
    }
    first += is_marked(marks, first) ? 1 : 0;
    behind -= behind > first && is_marked(marks, behind - 1) ? 1 : 0;
    if (behind <= first) {
        return true;
    }
    for (uint64_t page = first; page < behind; page++) {
        if (is_marked(marks, page)) {
            return false;
        }
        marks[page / 8] |= (uint8_t)(1U << page % 8);
    }
    overlay->pages_left -= behind - first;
    add_resident(
        overlay,
        &overlay->heaps[i].pages,
        region,
        region->start + first * PAGE_BYTES,
        least(region->start + behind * PAGE_BYTES, region->end)
    );
    return true;
}

bool ml_overlay_add(struct ml_overlay *overlay, uint64_t address, uint64_t bytes) {
    const struct memlog_service_process_view *view = overlay->view;
    const uint64_t end = bytes <= UINT64_MAX - address ? address + bytes : UINT64_MAX;
    uint32_t i = region_at(overlay, address);
    bool is_fine = true;
    if (i == overlay->regions_count || view->regions.items[i].start > address) {
        overlay->elsewhere_bytes += bytes;
        return true;
    }
    overlay->heaps[i].blocks++;
    overlay->heaps[i].requested_bytes += bytes;
    for (; is_fine && bytes > 0 && i < overlay->regions_count && view->regions.items[i].start < end;
         i++) {
        const struct memlog_service_memory_region *region = &view->regions.items[i];
        const uint64_t from = region->start > address ? region->start : address;
        const uint64_t to = least(region->end, end);
        is_fine = mark_pages(overlay, i, from, to); /* else what follows may take long */
        if (is_fine) {
            add_resident(overlay, &overlay->heaps[i].bytes, region, from, to);
        }
    }
    return is_fine;
}

void ml_overlay_end(struct ml_overlay *overlay) {
    for (uint32_t i = 0; overlay->marks != NULL && i < overlay->regions_count; i++) {
        free(overlay->marks[i]);
    }
    free(overlay->marks);
    overlay->marks = NULL;
}
