/* Types of blocks that nobody registered. Room: tools. Context: one thread.
 *
 * One rule: a block has the first type that is known of it: as the program registered it, else by
 * its vtable or the type that a Python object holds, else by the names of the frames that allocated
 * it. No figure changes, but whose it is. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_TYPES_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_TYPES_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/stacks/stacks.h"

/* Part from each stack the live blocks whose first word is the address of a vtable, by class, or
 * that hold the address of a type of Python's, by type; what
 * of them was at the peak, or was ever allocated, nobody knows. Before stacks are pruned or
 * filtered, and before _find_types. Nothing, where a heap of the program's own was chosen.
 * `profile` as there. The symbolizer must outlive the stacks. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_stacks_find_classes(
    struct ml_stacks *stacks, struct ml_profile *profile, struct ml_symbolizer *symbolizer
);

/* Give the stacks of all details their types, after they have names. Afterwards each process has
 * details. `profile` is the stacks' own; types are added to its processes. Errors: ML_ENV_MEMORY.
 */
ML_NODISCARD enum ml_status
ml_stacks_find_types(struct ml_stacks *stacks, struct ml_profile *profile);

#endif
