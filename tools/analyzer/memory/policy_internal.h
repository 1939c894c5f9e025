/* What the reader and the checker of policies share. Room: tools. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_POLICY_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_POLICY_INTERNAL_H

#include "tools/analyzer/memory/policy.h"

#define ML_POLICY_MODULE "{module}"

/* A row that has nothing but an allocator and a kind. False: no rule takes all such rows. */
bool ml_policy_covers(
    const struct ml_policy *policy, enum ml_row_allocator allocator, enum ml_component kind
);

/* Check that every kind of memory has a rule. False: an error message names the missing one. */
bool ml_policy_check(
    const struct ml_policy *policy, const char *file, struct ml_error_message *error
);

#endif
