#include "host/memory/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/memory/status.h"

/* ---- PAGEMAP_SCAN, Linux 6.7: linux/fs.h, which headers of before lack */

struct scan_range {
    uint64_t start, end, categories;
};

struct scan_request {
    uint64_t size_bytes, flags;
    uint64_t start, end, walk_end;
    uint64_t ranges, ranges_count, max_pages;
    uint64_t inverted, all_of, any_of, returned;
};

#define SCAN_REQUEST _IOWR('f', 16, struct scan_request)

enum { SCAN_PRESENT = 1 << 3, SCAN_ZERO_PAGE = 1 << 5, SCAN_RANGES = 256 };

/* ---- /proc/PID/pagemap: eight bytes a page */

#define ENTRY_PRESENT ((uint64_t)1 << 63)
#define ENTRY_PRIVATE ((uint64_t)1 << 56)

enum { ENTRIES = 4096, FIRST_CAPACITY = 256, KIB = 1024 };

/* Without PAGEMAP_SCAN every page has to be looked at: 30 ms for so much address space. */
static const uint64_t looked_at_max_bytes = (uint64_t)1 << 30;

struct reading {
    struct ml_memory_pages *pages;
    const struct ml_memory_region *region;
    int pagemap_fd;
    uint64_t page_bytes;
    bool is_mixed; /* some of the region's pages are private, some are not */
};

/* Add pages, to the last run where they follow it. False: no room. */
static bool add(struct reading *reading, uint64_t address, uint64_t bytes, bool shared) {
    struct ml_memory_pages *pages = reading->pages;
    struct ml_memory_pages_run *last = pages->count > 0 ? &pages->items[pages->count - 1] : NULL;
    if (last != NULL && last->address >= reading->region->start &&
        last->address + last->bytes == address && last->shared == shared) {
        last->bytes += bytes;
        return true;
    }
    if (pages->count == ML_MEMORY_PAGES_MAX) {
        return false;
    }
    if (pages->count == pages->capacity) {
        const uint32_t capacity = pages->capacity > 0 ? pages->capacity * 2 : FIRST_CAPACITY;
        struct ml_memory_pages_run *items =
            reallocarray(pages->items, capacity, sizeof(*pages->items));
        if (items == NULL) {
            return false;
        }
        pages->items = items;
        pages->capacity = capacity;
    }
    pages->items[pages->count++] =
        (struct ml_memory_pages_run){.address = address, .bytes = bytes, .shared = shared};
    return true;
}

/* Whether the region's pages are private, where they all are alike. */
static bool is_shared(const struct ml_memory_region *region) {
    return region->figures_kb[ML_MEMORY_PRIVATE_CLEAN] +
               region->figures_kb[ML_MEMORY_PRIVATE_DIRTY] ==
           0;
}

static void note_error(struct reading *reading, int error) {
    if (reading->pages->error == 0 && error != ESRCH) {
        reading->pages->error = error;
    }
}

/* Each page from `start` to `end`, by its entry. False: unreadable, or no room. */
static bool look_at_pages(struct reading *reading, uint64_t start, uint64_t end) {
    uint64_t entries[ENTRIES];
    uint64_t at = start / reading->page_bytes;
    const uint64_t last = end / reading->page_bytes;
    while (at < last) {
        const uint64_t wanted = last - at < ENTRIES ? last - at : ENTRIES;
        const ssize_t count = pread(
            reading->pagemap_fd, entries, wanted * sizeof(*entries), (off_t)(at * sizeof(*entries))
        );
        if (count < (ssize_t)sizeof(*entries)) {
            note_error(reading, count < 0 ? errno : 0);
            return false; /* it is ending */
        }
        for (size_t i = 0; i < (size_t)count / sizeof(*entries); i++, at++) {
            if ((entries[i] & ENTRY_PRESENT) != 0 && !add(
                                                         reading,
                                                         at * reading->page_bytes,
                                                         reading->page_bytes,
                                                         (entries[i] & ENTRY_PRIVATE) == 0
                                                     )) {
                return false;
            }
        }
    }
    return true;
}

static bool add_range(struct reading *reading, const struct scan_range *range) {
    return reading->is_mixed
               ? look_at_pages(reading, range->start, range->end)
               : add(reading, range->start, range->end - range->start, is_shared(reading->region));
}

/* The region's resident ranges. False: unreadable, no room, or (*out_unknown) the kernel does not
 * know the request. */
static bool scan(struct reading *reading, bool *out_unknown) {
    struct scan_range ranges[SCAN_RANGES];
    uint64_t start = reading->region->start;
    *out_unknown = false;
    while (start < reading->region->end) {
        struct scan_request request = {
            .size_bytes = sizeof(request),
            .start = start,
            .end = reading->region->end,
            .ranges = (uint64_t)(uintptr_t)ranges,
            .ranges_count = SCAN_RANGES,
            .inverted = SCAN_ZERO_PAGE,
            .all_of = SCAN_PRESENT | SCAN_ZERO_PAGE, /* present, and not the page of zeros */
            .returned = SCAN_PRESENT,
        };
        const int count = ioctl(reading->pagemap_fd, SCAN_REQUEST, &request);
        if (count < 0) {
            *out_unknown = errno == ENOTTY || errno == EINVAL;
            note_error(reading, *out_unknown ? 0 : errno);
            return false;
        }
        for (int i = 0; i < count; i++) {
            if (!add_range(reading, &ranges[i])) {
                return false;
            }
        }
        /* walk_end may lie before what was told: pages would count twice. */
        start = count == SCAN_RANGES ? ranges[count - 1].end : reading->region->end;
    }
    return true;
}

/* Whether blocks may lie in it, and its figures leave open where its pages are. */
static bool is_wanted(const struct ml_memory_region *region) {
    const uint64_t *figures_kb = region->figures_kb;
    const uint64_t private_kb =
        figures_kb[ML_MEMORY_PRIVATE_CLEAN] + figures_kb[ML_MEMORY_PRIVATE_DIRTY];
    const uint64_t resident_kb = figures_kb[ML_MEMORY_RESIDENT];
    return region->end > region->start && region->inode == 0 &&
           (region->permissions & ML_MEMORY_SHARED) == 0 && resident_kb > 0 &&
           (resident_kb < figures_kb[ML_MEMORY_SIZE] || (private_kb > 0 && private_kb < resident_kb)
           );
}

static bool is_any_wanted(const struct ml_memory_regions *regions) {
    for (uint32_t i = 0; i < regions->count; i++) {
        if (is_wanted(&regions->items[i])) {
            return true;
        }
    }
    return false;
}

static bool read_region(struct reading *reading, bool *has_scan) {
    bool is_unknown = false;
    const uint64_t *figures_kb = reading->region->figures_kb;
    reading->is_mixed =
        figures_kb[ML_MEMORY_SHARED_CLEAN] + figures_kb[ML_MEMORY_SHARED_DIRTY] > 0 &&
        !is_shared(reading->region);
    if (*has_scan) {
        const bool was_read = scan(reading, &is_unknown);
        *has_scan = !is_unknown;
        if (!is_unknown) {
            return was_read;
        }
    }
    return figures_kb[ML_MEMORY_SIZE] * KIB <= looked_at_max_bytes &&
           look_at_pages(reading, reading->region->start, reading->region->end);
}

void ml_memory_pages_init(
    struct ml_memory_pages *pages, pid_t pid, struct ml_memory_regions *regions
) {
    char path[64];
    bool has_scan = true;
    *pages = (struct ml_memory_pages){0};
    (void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    struct reading reading = {
        .pages = pages,
        .pagemap_fd = open(path, O_RDONLY | O_CLOEXEC),
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
    if (reading.pagemap_fd < 0) {
        pages->error = is_any_wanted(regions) ? ml_memory_file_error(pid, "pagemap") : 0;
        return;
    }
    for (uint32_t i = 0; i < regions->count; i++) {
        struct ml_memory_region *region = &regions->items[i];
        const uint32_t count_before = pages->count;
        if (is_wanted(region)) {
            reading.region = region;
            region->has_pages = read_region(&reading, &has_scan);
            pages->count = region->has_pages ? pages->count : count_before;
        }
    }
    (void)close(reading.pagemap_fd);
}

void ml_memory_pages_fini(struct ml_memory_pages *pages) {
    free(pages->items);
    *pages = (struct ml_memory_pages){0};
}
