/* What a process's memory is made of. Each resident byte has one owner, and the sums of all owners
 * are the kernel's figures. Room: tools. Context: one thread.
 *
 * One rule: nothing is left over, and nothing is guessed. Memory without a known owner is a
 * component. What moved between two readings is counted apart. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_COMPONENTS_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_COMPONENTS_H

#include <stdint.h>

#include "tools/analyzer/model/profile.h"

enum ml_component {
    ML_COMPONENT_HEAP,      /* live blocks, where they are resident */
    ML_COMPONENT_SLACK,     /* the rest of their pages, and of [heap]: freed, headers, fragments */
    ML_COMPONENT_CODE,      /* of files, executable */
    ML_COMPONENT_DATA,      /* of files, written to: .data, and .bss behind it */
    ML_COMPONENT_FILES,     /* of files, the rest */
    ML_COMPONENT_SHARED,    /* shared memory without a file on a disk */
    ML_COMPONENT_STACK,     /* the main thread's */
    ML_COMPONENT_MEMLOG,    /* the profiler's own file and staging */
    ML_COMPONENT_ANONYMOUS, /* mapped by the program, for an unknown purpose */
    ML_COMPONENTS
};

/* Units: bytes. */
struct ml_component_figures {
    uint64_t private, shared; /* resident */
    uint64_t proportional;
    uint64_t swapped;
};

struct ml_components {
    struct ml_component_figures of[ML_COMPONENTS];
    struct ml_component_figures all; /* the kernel's own sums */
    /* Bytes of blocks beyond what the kernel counted in their mappings. They became resident
     * between two readings, and count nowhere above. */
    uint64_t moved;
};

/* "heap", "allocator slack", ... */
const char *ml_component_name(enum ml_component component);

/* All 0 where the process's mappings are not in the dump. */
void ml_components_of(const struct ml_profile_process *process, struct ml_components *out);

#endif
