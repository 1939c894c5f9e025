/* A process's live blocks, laid over the pages that the kernel says are resident: how much of each
 * mapping they hold, and which stacks' blocks keep which pages. Room: service. Context: one thread;
 * no I/O.
 *
 * One rule: what blocks hold of a region is never more than what is resident of it: a block counts
 * where its pages are there. Of a region whose pages were not told, each byte counts by the share
 * of the region that is resident, and the overlay says so.
 *
 * All blocks are added; then all of them are shared, in any order; then it is settled until nothing
 * is left. After that the sums over cells are those over regions, to the byte. */
#ifndef MEMLOG_SERVICE_MEMORY_OVERLAY_H
#define MEMLOG_SERVICE_MEMORY_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/limits/budget.h"
#include "service/memory/page_table.h"
#include "service/memory/resident.h"

/* What live blocks hold of a region. */
struct ml_region_heap {
    uint64_t blocks;          /* that begin in it */
    uint64_t requested_bytes; /* of them, resident or not */
    struct ml_resident bytes; /* of blocks, those that reach into it too */
    struct ml_resident pages; /* whole pages on which some block lies */
};

/* What the live blocks of a cell hold. */
struct ml_cell_memory {
    uint32_t cell;
    uint32_t node;            /* its stack */
    struct ml_resident bytes; /* of its blocks */
    uint64_t alone_bytes;     /* of pages on which blocks of its stack alone lie */
    uint64_t waste_bytes;     /* its share of what its pages hold beside blocks */
};

struct ml_overlay {
    const struct memlog_service_process_view *view; /* borrowed */
    struct ml_budget *budget;                       /* of all but `heaps`, until the end */
    struct ml_region_heap *heaps;                   /* by region */
    struct ml_page_table *tables;                   /* by region; NULL behind the end */
    struct ml_cell_memory *cells; /* by number; behind the end those with blocks alone */
    uint32_t cells_count;
    uint32_t regions_count;   /* of them so many have an address */
    uint32_t near_region;     /* in which the last block began that was looked for */
    uint32_t settled_regions; /* so many are, ... */
    uint64_t settled_chunks;  /* ... and the next one's chunks up to here */
    uint64_t pages_left;      /* that may still be marked */
    uint64_t elsewhere_bytes; /* of blocks that lie in no region: mapped since */
    bool is_estimated;        /* some region's pages were not told */
    bool has_cells;           /* it is settled and at its end: `cells` tell who holds what */
};

/* For blocks of cells below cells_count. What adding needs counts against the budget.
 * Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_overlay_init(
    struct ml_overlay *overlay,
    const struct memlog_service_process_view *view,
    struct ml_budget *budget,
    uint32_t cells_count
);
void ml_overlay_fini(struct ml_overlay *overlay);

/* Blocks on more pages are not laid: 256 GiB of address space. */
#define ML_OVERLAY_PAGES_MAX ((uint64_t)1 << 26)

/* Add a live block of that cell, which is of that stack. False: the overlay is of no use. There is
 * no memory; blocks lie on too many pages; or a block lies over others, as a process could tell
 * that wants to keep the service busy. */
ML_NODISCARD bool ml_overlay_add(
    struct ml_overlay *overlay, uint64_t address, uint64_t bytes, uint32_t cell, uint32_t node
);

/* Give a block that was added its share of what its pages hold beside blocks: by its bytes. What
 * rounding leaves of a page is for its lowest block, so the order does not matter. */
void ml_overlay_share(struct ml_overlay *overlay, uint64_t address, uint64_t bytes, uint32_t cell);

/* All blocks have their shares: settle some thousand pages. True: there are more. */
ML_NODISCARD bool ml_overlay_settle(struct ml_overlay *overlay);

/* What is resident of the pages from `start` to `end`, both in that region, on which some block
 * lies. After all blocks were added, until the end. */
struct ml_resident
ml_overlay_pages(struct ml_overlay *overlay, uint32_t region, uint64_t start, uint64_t end);

/* Give back what only laying needs. Nothing is added, shared or settled any more. */
void ml_overlay_end(struct ml_overlay *overlay);

/* The bytes of what stays until ml_overlay_fini. */
uint64_t ml_overlay_bytes(const struct ml_overlay *overlay);

#endif
