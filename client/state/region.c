#include "client/state/region.h"

#include <errno.h>
#include <sys/mman.h>

#include "client/state/sys.h"

enum {
    PAGE_BYTES = 4096,
    STEP_SHARE = 4,          /* a quarter of what there is, ... */
    STEP_LEAST = 256 * 1024, /* ... at least so much, ... */
    STEP_MOST = 4 << 20,     /* ... and at most */
    ERRNO_MOST = 4095,       /* system calls answer -1 .. -4095 */
    ADVISE_WIPEONFORK = 18   /* MADV_WIPEONFORK, Linux 4.14 */
};

uint64_t ml_region_next(const struct ml_region *region, uint64_t bytes) {
    uint64_t step = (bytes / STEP_SHARE + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    step = step < STEP_LEAST ? STEP_LEAST : step;
    step = step > STEP_MOST ? STEP_MOST : step;
    return bytes + step < region->max_bytes ? bytes + step : region->max_bytes;
}

/* The least size of the sequence that is larger than `bytes`, of it, and no less than wanted. */
static uint64_t size_behind(const struct ml_region *region, uint64_t bytes, uint64_t wanted_bytes) {
    do {
        bytes = ml_region_next(region, bytes);
    } while (bytes < wanted_bytes);
    return bytes;
}

uint64_t ml_region_target(const struct ml_region *region, uint64_t wanted_bytes) {
    const uint64_t mapped = atomic_load_explicit(&region->mapped_bytes, memory_order_acquire);
    if (wanted_bytes <= mapped) {
        return mapped;
    }
    return wanted_bytes <= region->max_bytes ? size_behind(region, mapped, wanted_bytes) : 0;
}

/* In place, or not at all. */
static long lengthen(const struct ml_region *region, uint64_t from_bytes, uint64_t to_bytes) {
    return ml_sys4(SYS_mremap, (long)region->start, (long)from_bytes, (long)to_bytes, 0);
}

/* The kernel answers EFAULT to a length that the mapping does not have. Any other answer to a
 * length that no mapping of ours ever has comes from a filter. */
static bool is_kernels_word(const struct ml_region *region) {
    const uint64_t beyond = region->max_bytes + UINT64_C(2) * PAGE_BYTES;
    return lengthen(region, beyond, beyond + PAGE_BYTES) == -EFAULT;
}

static void note(struct ml_region *region, uint64_t bytes) {
    uint64_t seen = atomic_load_explicit(&region->mapped_bytes, memory_order_relaxed);
    while (seen < bytes &&
           !atomic_compare_exchange_weak_explicit(
               &region->mapped_bytes, &seen, bytes, memory_order_release, memory_order_relaxed
           )) {
    }
}

bool ml_region_reach(struct ml_region *region, uint64_t wanted_bytes) {
    const uint64_t mapped = atomic_load_explicit(&region->mapped_bytes, memory_order_acquire);
    uint64_t at = mapped;
    if (wanted_bytes <= mapped) {
        return true;
    }
    if (wanted_bytes > region->max_bytes) {
        return false;
    }
    for (;;) {
        const bool longest = at >= region->max_bytes; /* a page beyond asks for the present size */
        const uint64_t target = longest ? at + PAGE_BYTES : size_behind(region, at, wanted_bytes);
        const long result = lengthen(region, at, target);
        if (result == (long)region->start) {
            note(region, longest ? at : target);
            return true;
        }
        /* Not EFAULT: the mapping is at least `at` long. If that is more than was known, another
         * thread has lengthened it. */
        if ((result != -ENOMEM && result != -EAGAIN) || (at > mapped && !is_kernels_word(region))) {
            return false;
        }
        note(region, at);
        if (at >= wanted_bytes) {
            return true;
        }
        at = ml_region_next(region, at);
    }
}

bool ml_region_map(struct ml_region *region, void *wanted) {
    /* Wanted is a wish, as filters know it: not all know MAP_FIXED_NOREPLACE. */
    const long at = ml_sys6(
        SYS_mmap,
        (long)wanted,
        (long)region->first_bytes,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1,
        0
    );
    if (at < 0 && at >= -ERRNO_MOST) {
        return false;
    }
    region->start = (uint8_t *)at;
    atomic_store_explicit(&region->mapped_bytes, region->first_bytes, memory_order_relaxed);
    /* Without the wipe a child would write into its parent's streams, so there is no region then.
     */
    if ((wanted != NULL && region->start != (uint8_t *)wanted) ||
        ml_sys3(SYS_madvise, at, (long)region->first_bytes, ADVISE_WIPEONFORK) != 0) {
        ml_region_unmap(region);
        return false;
    }
    (void)ml_sys3(SYS_madvise, at, (long)region->first_bytes, MADV_DONTDUMP);
    (void)ml_sys3(SYS_madvise, at, (long)region->first_bytes, MADV_NOHUGEPAGE);
    return true;
}

void ml_region_unmap(struct ml_region *region) {
    const uint64_t mapped = atomic_load_explicit(&region->mapped_bytes, memory_order_relaxed);
    if (region->start != NULL) {
        (void)ml_sys3(SYS_munmap, (long)region->start, (long)mapped, 0);
    }
    *region =
        (struct ml_region){.first_bytes = region->first_bytes, .max_bytes = region->max_bytes};
}
