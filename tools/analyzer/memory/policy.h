/* Policies: rules that sort a process's memory into components, in dmprof's form. Room: tools.
 * Context: one thread.
 *
 * One rule: the first rule that matches takes the row, and each possible row has a rule: a policy
 * that leaves out a kind of memory is refused. docs/components.md tells the form. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_POLICY_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "tools/analyzer/memory/pattern.h"
#include "tools/analyzer/memory/row_text.h"
#include "tools/analyzer/memory/rows.h"
#include "tools/analyzer/model/string_table.h"

/* What a pattern of a rule is matched with. */
enum ml_policy_key {
    ML_POLICY_STACK_FUNCTION,
    ML_POLICY_STACK_SOURCE_FILE,
    ML_POLICY_STACK_MODULE,
    ML_POLICY_TYPE_INFO,
    ML_POLICY_MAPPED_PATH,
    ML_POLICY_MAPPED_PERMISSION,
    ML_POLICY_VMA_NAME,
    ML_POLICY_SHARED_WITH,
    ML_POLICY_KIND,
    ML_POLICY_KEYS
};

struct ml_policy_rule {
    char *name;          /* "{module}" in it is replaced by the row's (ml_row_module()) */
    unsigned allocators; /* a bit for each enum ml_row_allocator */
    bool has[ML_POLICY_KEYS];
    struct ml_pattern patterns[ML_POLICY_KEYS];
};

struct ml_policy {
    struct ml_policy_rule *rules;
    size_t rules_count, rules_capacity;
    struct ml_string_table components; /* in the policy's order; those with a module as they come */
};

enum { ML_POLICY_MAX_BYTES = 1 << 20, ML_POLICY_RULES_MAX = 4096 };

/* Read a policy from its JSON. `file` names it in messages. False: an error message names file and
 * rule; _fini is needed even then. */
bool ml_policy_read(
    struct ml_policy *policy,
    const char *bytes,
    size_t count_bytes,
    const char *file,
    struct ml_error_message *error
);
void ml_policy_fini(struct ml_policy *policy);

/* The text of a policy that memlog brings: "l0", "l1", "l2". NULL: there is none of that name. */
const char *ml_policy_built_in(const char *name);

/* Whether a component depends on the names of functions. */
bool ml_policy_needs_names(const struct ml_policy *policy);

/* The component of a row: a number in policy->components. ML_STRING_NONE: no memory. `text` is the
 * caller's scratch. */
uint32_t ml_policy_component(
    struct ml_policy *policy,
    const struct ml_stacks *stacks,
    const struct ml_row *row,
    struct ml_row_text *text
);

#endif
