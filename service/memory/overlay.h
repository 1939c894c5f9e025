/* A process's live blocks, laid over the pages that the kernel says are resident: how much of each
 * mapping they hold. Room: service. Context: one thread; no I/O.
 *
 * One rule: what blocks hold of a region is never more than what is resident of it: a block counts
 * where its pages are there. Of a region whose pages were not told, each byte counts by the share
 * of the region that is resident, and the overlay says so. */
#ifndef MEMLOG_SERVICE_MEMORY_OVERLAY_H
#define MEMLOG_SERVICE_MEMORY_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* Units: bytes, resident. */
struct ml_resident {
    uint64_t private, shared;
};

/* What live blocks hold of a region. */
struct ml_region_heap {
    uint64_t blocks;          /* that begin in it */
    uint64_t requested_bytes; /* of them, resident or not */
    struct ml_resident bytes; /* of blocks, those that reach into it too */
    struct ml_resident pages; /* whole pages on which some block lies */
};

struct ml_overlay {
    const struct memlog_service_process_view *view; /* borrowed */
    struct ml_region_heap *heaps;                   /* by region */
    uint8_t **marks; /* by region: a bit for each page on which a block lies; NULL: none yet */
    uint32_t regions_count;   /* of them so many have an address */
    uint64_t pages_left;      /* that may still be marked */
    uint64_t elsewhere_bytes; /* of blocks that lie in no region: mapped since */
    bool is_estimated;        /* some region's pages were not told */
};

/* Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_overlay_init(struct ml_overlay *overlay, const struct memlog_service_process_view *view);
void ml_overlay_fini(struct ml_overlay *overlay);

/* All blocks are added: give back what only adding needs. */
void ml_overlay_end(struct ml_overlay *overlay);

/* Blocks on more pages are not laid: 256 GiB of address space. */
#define ML_OVERLAY_PAGES_MAX ((uint64_t)1 << 26)

/* Add a live block. False: the overlay is of no use. There is no memory; blocks lie on too many
 * pages; or a block lies over others, as a process could tell that wants to keep the service busy.
 */
ML_NODISCARD bool ml_overlay_add(struct ml_overlay *overlay, uint64_t address, uint64_t bytes);

#endif
