#include "service/memory/resident.h"

__extension__ typedef unsigned __int128 ml_wide_product;

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

static uint64_t private_kb_of(const struct memlog_service_memory_region *region) {
    return region->private_clean_kb + region->private_dirty_kb;
}

static uint64_t shared_kb_of(const struct memlog_service_memory_region *region) {
    return region->shared_clean_kb + region->shared_dirty_kb;
}

bool ml_resident_is_estimated(const struct memlog_service_memory_region *region) {
    const uint64_t private_kb = private_kb_of(region);
    const uint64_t shared_kb = shared_kb_of(region);
    return !region->has_pages && ((private_kb > 0 && private_kb < region->size_kb) ||
                                  (shared_kb > 0 && shared_kb < region->size_kb));
}

/* All of the region's pages are alike, or it is not known which of them are resident. */
static void add_by_figures(
    struct ml_resident *sum, const struct memlog_service_memory_region *region, uint64_t bytes
) {
    const uint64_t private_kb = private_kb_of(region);
    const uint64_t shared_kb = shared_kb_of(region);
    if (region->size_kb > 0) {
        sum->private += part_of(bytes, private_kb, region->size_kb);
        sum->shared += part_of(bytes, shared_kb, region->size_kb);
    }
}

void ml_resident_add(
    struct ml_resident *sum,
    const struct memlog_service_process_view *view,
    const struct memlog_service_memory_region *region,
    uint64_t start,
    uint64_t end
) {
    if (region->has_pages) {
        add_by_pages(sum, view, start, end);
    } else {
        add_by_figures(sum, region, end - start);
    }
}
