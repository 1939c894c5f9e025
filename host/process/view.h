/* What a process is made of, for a dump's reader: its threads' names, and what its memory is. Room:
 * host. Context: any; reads /proc only.
 *
 * One rule: as in info.h, what cannot be read is left out. */
#ifndef MEMLOG_HOST_PROCESS_VIEW_H
#define MEMLOG_HOST_PROCESS_VIEW_H

#include <stdint.h>
#include <sys/types.h>

#include "host/process/info.h"

/* The limits of the contract, memlog.service.ProcessView. Of more threads the first are told; more
 * names of mappings become one, "[others]". */
enum { ML_PROCESS_VIEW_THREADS = 1024, ML_PROCESS_VIEW_MAPPINGS = 256 };

struct ml_process_thread {
    uint32_t tid;
    char name[ML_PROCESS_NAME_BYTES];
};

/* All mappings of one name; figures in the order of the enum below, in KiB. */
enum ml_mapping_figure {
    ML_MAPPING_SIZE,
    ML_MAPPING_PRIVATE_CLEAN,
    ML_MAPPING_PRIVATE_DIRTY,
    ML_MAPPING_SHARED_CLEAN,
    ML_MAPPING_SHARED_DIRTY,
    ML_MAPPING_PROPORTIONAL,
    ML_MAPPING_SWAP,
    ML_MAPPING_FIGURES
};

struct ml_process_mapping {
    char *name;
    uint64_t figures_kb[ML_MAPPING_FIGURES];
};

struct ml_process_view {
    struct ml_process_thread *threads;
    uint32_t threads_count;
    struct ml_process_mapping *mappings;
    uint32_t mappings_count;
    uint32_t libcs_count; /* executable mappings of a libc: 2 where dlmopen has loaded one more */
    uint32_t current;     /* the mapping whose figures come next, while it is read */
};

/* Look at the process. Without memory, or where it may not be read, the view is empty. */
void ml_process_view_init(struct ml_process_view *view, pid_t pid);
void ml_process_view_fini(struct ml_process_view *view);

/* One line of /proc/PID/smaps, NUL-terminated, with or without its end of line. */
void ml_process_view_line(struct ml_process_view *view, const char *line);

#endif
