/* The owners of a process's memory, one for each resident byte. Room: tools. Context: one thread.
 *
 * One rule: the parts of a mapping add up to the kernel's figures of it, to the byte. An owner
 * never takes more than is left. What it claims beyond has moved between two readings, and is
 * counted. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_OWNERS_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_OWNERS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/memory/kind.h"
#include "tools/analyzer/model/profile.h"

/* What one owner holds of one mapping. */
struct ml_owned {
    size_t region; /* index of the process's mapping */
    enum ml_component kind;
    const struct ml_profile_region_holding *holding; /* NULL: live blocks, or what is left */
    struct ml_component_figures figures;             /* not all 0 */
};

struct ml_owner_visitor {
    void (*take)(void *context, const struct ml_owned *owned);
    void *context;
};

/* The kernel's own figures of a mapping. */
struct ml_component_figures ml_region_figures(const struct ml_profile_region *region);

void ml_component_figures_add(
    struct ml_component_figures *sum, const struct ml_component_figures *figures
);

/* Take a part from what is left, and no more than that. */
struct ml_component_figures ml_component_figures_take(
    struct ml_component_figures *left, uint64_t private_bytes, uint64_t shared_bytes
);

/* Visit the owners, mapping by mapping: the profiler, threads' stacks, live blocks, the rest of
 * their pages, allocators, those who mapped it, what is left. The kernel tells the proportional
 * bytes of whole mappings only: a part has its private bytes and, of the others, its share by
 * shared bytes. Swapped bytes are the largest holding's; without one, of what is left.
 *
 * Returns the bytes that owners claim beyond what the kernel counted; less than 0: the kernel
 * counted in more than the owners together (they have it all the same). */
int64_t
ml_owners_visit(const struct ml_profile_process *process, const struct ml_owner_visitor *visitor);

#endif
