/* What owners other than live blocks hold of a process's resident memory. Room: service. Context:
 * one thread; no I/O.
 *
 * One rule: the kernel's view decides. A process's word on who mapped what counts where the kernel
 * has resident pages, and pages on which live blocks lie are the heap's.
 *
 * Of anonymous memory without an owner, what glibc's malloc has is recognized: its further arenas
 * lie at multiples of 64 MiB. */
#ifndef MEMLOG_SERVICE_MEMORY_HOLDINGS_H
#define MEMLOG_SERVICE_MEMORY_HOLDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "service/memory/mappings.h"
#include "service/memory/overlay.h"

/* As MemlogHoldings of ipc/trace/trace.proto has them. */
enum ml_owner_kind {
    ML_OWNER_MAPPED,    /* by the stack that mapped it */
    ML_OWNER_ALLOCATOR, /* an allocator's own: no block lies on these pages */
    ML_OWNER_STACK,     /* a thread's */
    ML_OWNER_MEMLOG     /* the profiler's */
};

struct ml_holding {
    uint32_t region; /* index in the view */
    uint32_t kind;   /* enum ml_owner_kind */
    uint32_t node;   /* 0: no stack */
    uint32_t name;   /* string id; 0: none */
    uint64_t mapped_bytes;
    struct ml_resident bytes; /* without pages on which live blocks lie */
};

struct ml_holdings {
    struct ml_holding *items; /* by region and address */
    uint32_t count, capacity;
    uint64_t private_bytes;   /* of all of them */
    uint64_t allocator_bytes; /* of those of ML_OWNER_ALLOCATOR */
};

/* All zero at first, with what it is made of. */
struct ml_holdings_work {
    const struct memlog_service_process_view *view; /* borrowed */
    struct ml_overlay *overlay;      /* borrowed; NULL: it is not known where blocks lie */
    const struct ml_mapping *pieces; /* borrowed; by address */
    uint32_t pieces_count;
    uint32_t region, piece; /* to go on with */
};

/* Add the holdings of some regions. True: there are more regions. Without memory the rest has
 * none. */
ML_NODISCARD bool ml_holdings_add(struct ml_holdings *holdings, struct ml_holdings_work *work);
void ml_holdings_fini(struct ml_holdings *holdings);

#endif
