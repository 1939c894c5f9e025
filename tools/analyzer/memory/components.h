/* What a process's memory is made of. Each resident byte has one owner, and the sums of all owners
 * are the kernel's figures. Room: tools. Context: one thread.
 *
 * One rule: nothing is left over, and nothing is guessed. Memory without a known owner is a
 * component. What moved between two readings is counted apart. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_COMPONENTS_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_COMPONENTS_H

#include <stdint.h>

#include "tools/analyzer/memory/owners.h"
#include "tools/analyzer/model/profile.h"

struct ml_components {
    struct ml_component_figures of[ML_COMPONENTS];
    struct ml_component_figures all; /* the kernel's own sums */
    int64_t
        moved; /* between two readings, in no component: ml_owners_visit(), and blocks elsewhere */
};

/* All 0 where the process's mappings are not in the dump. */
void ml_components_of(const struct ml_profile_process *process, struct ml_components *out);

#endif
