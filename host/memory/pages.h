/* Which pages of a process's private memory are resident. Room: host. Context: any; reads /proc
 * only.
 *
 * One rule: a region has either all of its resident pages here or none of them. A region that is
 * resident as a whole, or not at all, needs none: its figures say it.
 *
 * Only regions are read in which an allocator's blocks may lie: private ones that no file backs. */
#ifndef MEMLOG_HOST_MEMORY_PAGES_H
#define MEMLOG_HOST_MEMORY_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/memory/regions.h"

/* The limit of the contract, memlog.service.ProcessView. */
enum { ML_MEMORY_PAGES_MAX = 262144 };

/* Resident pages one behind the other, of one region. */
struct ml_memory_pages_run {
    uint64_t address, bytes;
    bool shared; /* other processes have them mapped as well */
};

struct ml_memory_pages {
    struct ml_memory_pages_run *items; /* by address */
    uint32_t count, capacity;
    int error; /* why some that were wanted could not be read, an errno; 0: nothing kept us */
};

/* Read them, and mark each region of which that was possible. */
void ml_memory_pages_init(
    struct ml_memory_pages *pages, pid_t pid, struct ml_memory_regions *regions
);
void ml_memory_pages_fini(struct ml_memory_pages *pages);

#endif
