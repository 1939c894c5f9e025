/* The kinds of memory: what policy l0 has one component for each. Room: tools. Context: any thread.
 *
 * One rule: a kind follows from what the kernel says of a mapping and from who is known to hold it.
 * Nothing is guessed. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_KIND_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/model/profile.h"

enum ml_component {
    ML_COMPONENT_HEAP,      /* live blocks, where they are resident */
    ML_COMPONENT_SLACK,     /* an allocator's: the rest of their pages, its own mappings, [heap] */
    ML_COMPONENT_INHERITED, /* of a forked process: at most what its parent's blocks take */
    ML_COMPONENT_CODE,      /* of files, executable */
    ML_COMPONENT_DATA,      /* of files, written to: .data, and .bss behind it */
    ML_COMPONENT_FILES,     /* of files, the rest */
    ML_COMPONENT_SHARED,    /* shared memory without a file on a disk */
    ML_COMPONENT_STACK,     /* of threads */
    ML_COMPONENT_MEMLOG,    /* the profiler's own */
    ML_COMPONENT_MAPPED,    /* mapped by the program; the stack that did it is known */
    ML_COMPONENT_ANONYMOUS, /* mapped by the program, for an unknown purpose */
    ML_COMPONENTS
};

/* Units: bytes. */
struct ml_component_figures {
    uint64_t private, shared; /* resident */
    uint64_t proportional;
    uint64_t swapped;
};

/* "heap", "allocator slack", ... */
const char *ml_component_name(enum ml_component component);

/* Whether that is an allocator's beside the blocks of the process. */
static inline bool ml_component_is_slack(enum ml_component component) {
    return component == ML_COMPONENT_SLACK || component == ML_COMPONENT_INHERITED;
}

/* The kind of a mapping, or of what is left of it where it has other owners, too. */
enum ml_component ml_component_of_region(
    const struct ml_profile_process *process, const struct ml_profile_region *region
);

#endif
