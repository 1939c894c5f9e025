/* Stacks by type, heap or scope: outside of the functions, or inside of them. Room: tools. Context:
 * one thread.
 *
 * One rule: every sum stays. The stacks of a type, a heap or a scope add up to what it holds, and
 * all of them to the figures of the heap that is shown. By heap, those of the other heaps stand
 * beside it, as in memlog report --by=heap. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_REGROUP_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_REGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/stacks/stacks.h"

/* In the order of ml_grouping_words. What is named first is outermost. */
enum ml_grouping {
    ML_GROUP_NONE, /* as recorded */
    ML_GROUP_TYPE,
    ML_GROUP_HEAP,
    ML_GROUP_SCOPE, /* all scopes of a stack, then its functions without them */
    ML_GROUP_HEAP_TYPE,
    ML_GROUP_BACKTRACE_TYPE,
    ML_GROUP_BACKTRACE_HEAP,
    ML_GROUP_BACKTRACE_SCOPE
};

/* "type", "heap,type", "backtrace,type" ...; NULL behind them. ML_GROUP_NONE has no word. */
extern const char *const ml_grouping_words[];

/* Whether types are told: stacks are to have theirs before (tools/analyzer/stacks/types.h). */
bool ml_grouping_tells_types(enum ml_grouping grouping);

/* Lists beside those of the stacks. An empty one is all zero. */
struct ml_regrouped {
    struct ml_stack_list *processes;
    size_t processes_count;
    struct ml_stack_list tree;
};

/* Make the lists. Only new nodes and places are added to `stacks`. A type, a heap and what stands
 * for none of them is a place of kind ML_PLACE_GROUP. Errors: ML_ENV_MEMORY; _fini is needed even
 * then. */
ML_NODISCARD enum ml_status ml_regrouped_init(
    struct ml_regrouped *regrouped, struct ml_stacks *stacks, enum ml_grouping grouping
);
void ml_regrouped_fini(struct ml_regrouped *regrouped);

/* The same in the place of the stacks' own lists. The lists of details become empty. Errors:
 * ML_ENV_MEMORY; then only _fini is allowed. */
ML_NODISCARD enum ml_status ml_stacks_regroup(struct ml_stacks *stacks, enum ml_grouping grouping);

#endif
