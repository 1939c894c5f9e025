/* What known leaks hold, taken out of a dump's live figures. Room: tools. Context: one thread.
 *
 * One rule: what is left out is counted and told. Only what is live, or was left, is left out:
 * peaks and totals stay, as they were held. A stack is left out if a pattern matches a function, a
 * source file or a module of any of its frames. */
#ifndef MEMLOG_TOOLS_ANALYZER_SUPPRESSIONS_SUPPRESS_H
#define MEMLOG_TOOLS_ANALYZER_SUPPRESSIONS_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"
#include "tools/analyzer/suppressions/suppressions.h"

struct ml_suppressed_part {
    uint64_t stacks, blocks, bytes; /* stacks: of all processes, each counted once */
};

struct ml_suppressed {
    const struct ml_suppressions *rules;
    struct ml_suppressed_part all;
    struct ml_suppressed_part *by; /* of each rule; of several that match, the innermost frame's
                                      first one counts */
    uint32_t *nodes; /* of each node of the stacks 1 + its rule; 0: none. Until they are filtered */
    size_t nodes_count;
};

/* Leave them out of the profile and of its stacks, which have their names and were not filtered
 * yet. Errors: ML_ENV_MEMORY; _fini is needed even then. Owner: the rules are borrowed. */
ML_NODISCARD enum ml_status ml_suppress(
    const struct ml_suppressions *rules,
    struct ml_profile *profile,
    struct ml_stacks *stacks,
    struct ml_suppressed *out_suppressed
);
void ml_suppressed_fini(struct ml_suppressed *suppressed);

/* Whether the stack of that node was left out. `suppressed` may be NULL: nothing was. */
bool ml_suppressed_has(const struct ml_suppressed *suppressed, uint32_t node);

/* For people, a line each: "Suppressed: 1.2 MiB in 12 blocks of 3 stacks, by FILE", then the
 * patterns. `where` is what the dump is called; NULL: there is one. */
void ml_suppressed_text(const struct ml_suppressed *suppressed, const char *where, FILE *out);

/* The patterns that matched in none of these, a line each: "Not used: leak:PATTERN (FILE:3)". */
void ml_suppressed_unused(const struct ml_suppressed *const *suppressed, size_t count, FILE *out);

/* The member "suppressed". Nothing where it is NULL. */
void ml_suppressed_json(const struct ml_suppressed *suppressed, struct ml_json *json);

#endif
