/* A piece of memory that grows where it lies. Room: client (private). Context: the malloc path of
 * all threads at once, signal handlers, forked children; one system call a step, no lock.
 *
 * One rule: memory behind the region's end is never touched: it may be somebody else's by now.
 *
 * The region is one mapping. mremap lengthens it in place, or not at all. What it adds has the
 * advice of the whole at once, MADV_WIPEONFORK too. Sizes are those of one sequence,
 * ml_region_next. So a thread that comes late knows which sizes the mapping may have by now. A
 * child that was forked before a step was noted knows it too. */
#ifndef MEMLOG_CLIENT_STATE_REGION_H
#define MEMLOG_CLIENT_STATE_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero: there is none, and it cannot grow. */
struct ml_region {
    uint8_t *start; /* a page */
    uint64_t first_bytes;
    uint64_t max_bytes;            /* address space beyond it is somebody else's */
    _Atomic uint64_t mapped_bytes; /* known to be mapped; may lag behind what is */
};

/* The size behind that one; `bytes` is of the sequence that begins with first_bytes. */
uint64_t ml_region_next(const struct ml_region *region, uint64_t bytes);

/* The size once [0, wanted_bytes) is mapped: the present one, or the least of the sequence that
 * suffices. 0: it never gets so large. */
uint64_t ml_region_target(const struct ml_region *region, uint64_t wanted_bytes);

/* Let [0, wanted_bytes) be mapped. False: the kernel refuses (a limit, a neighbour, a filter). Any
 * number of threads may ask at once. */
bool ml_region_reach(struct ml_region *region, uint64_t wanted_bytes);

/* Map its first_bytes, at `wanted` and nowhere else (NULL: anywhere), zero and private to this
 * process: a forked child's is zero, a core does not have it. False: there is no room there. */
bool ml_region_map(struct ml_region *region, void *wanted);

/* Give all of it back. */
void ml_region_unmap(struct ml_region *region);

#endif
