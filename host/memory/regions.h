/* A process's mappings as the kernel tells them. Room: host. Context: any; reads /proc only.
 *
 * One rule: sums over the regions are the kernel's own. What finds no room as a region of its own
 * is added to one without an address. */
#ifndef MEMLOG_HOST_MEMORY_REGIONS_H
#define MEMLOG_HOST_MEMORY_REGIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The limits of the contract, memlog.service.ProcessView. */
enum { ML_MEMORY_REGIONS_MAX = 65536, ML_MEMORY_REGION_NAME_BYTES = 1024 };

/* Units: KiB. */
enum ml_memory_figure {
    ML_MEMORY_SIZE,
    ML_MEMORY_RESIDENT,
    ML_MEMORY_PROPORTIONAL,
    ML_MEMORY_PRIVATE_CLEAN,
    ML_MEMORY_PRIVATE_DIRTY,
    ML_MEMORY_SHARED_CLEAN,
    ML_MEMORY_SHARED_DIRTY,
    ML_MEMORY_ANONYMOUS,
    ML_MEMORY_SWAP,
    ML_MEMORY_FIGURES
};

enum ml_memory_permission {
    ML_MEMORY_READ = 1,
    ML_MEMORY_WRITE = 2,
    ML_MEMORY_EXECUTE = 4,
    ML_MEMORY_SHARED = 8
};

struct ml_memory_region {
    uint64_t start, end; /* both 0: all that had no room, together */
    uint32_t permissions;
    uint64_t offset, device, inode; /* of its file, as stat tells it; inode 0: none */
    char *name;                     /* a file, [heap], [stack], ...; "": none */
    uint64_t figures_kb[ML_MEMORY_FIGURES];
    bool has_pages; /* host/memory/pages.h has read all of its resident pages */
};

struct ml_memory_regions {
    struct ml_memory_region *items; /* by address */
    uint32_t count, capacity;
};

/* Read all of them. None: the process is gone, may not be read, or there is no memory. */
void ml_memory_regions_init(struct ml_memory_regions *regions, pid_t pid);
void ml_memory_regions_fini(struct ml_memory_regions *regions);

/* One line of /proc/PID/smaps, NUL-terminated, with or without its end of line. Lines of figures
 * belong to the region that came last. False: no memory, the regions are of no use. */
bool ml_memory_regions_line(struct ml_memory_regions *regions, const char *line);

/* Whether its file has no name any more, and is no memory of memlog's own. */
bool ml_memory_region_is_unlinked(const struct ml_memory_region *region);

/* Executable mappings of glibc's libc: two where dlmopen has loaded one more. */
uint32_t ml_memory_regions_libcs(const struct ml_memory_regions *regions);

#endif
