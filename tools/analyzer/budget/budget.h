/* Budgets: what a program's memory may be, as rules that a build server checks. Room: tools.
 * Context: one thread.
 *
 * One rule: nothing in a budget is ignored. A key, a word or a size that is not understood refuses
 * the file, with its line. docs/budgets.md tells the form. */
#ifndef MEMLOG_TOOLS_ANALYZER_BUDGET_BUDGET_H
#define MEMLOG_TOOLS_ANALYZER_BUDGET_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "tools/analyzer/memory/kind.h"
#include "tools/analyzer/memory/pattern.h"

/* What a pattern of a rule is matched with. */
enum ml_budget_key {
    ML_BUDGET_PROCESS,  /* its name */
    ML_BUDGET_FUNCTION, /* of any frame of a stack: its name, whole or brief */
    ML_BUDGET_MODULE,   /* the base name of the file whose function a stack is attributed to */
    ML_BUDGET_TYPE,
    ML_BUDGET_HEAP,
    ML_BUDGET_KEYS
};

/* What a limit is about. */
enum ml_budget_figure {
    ML_BUDGET_PEAK_BYTES,
    ML_BUDGET_LEFT_BYTES, /* live at the dump; of an ended process what it left */
    ML_BUDGET_TOTAL_BYTES,
    ML_BUDGET_PRIVATE_BYTES, /* private memory by the kernel's count, swapped or not */
    ML_BUDGET_PEAK_BLOCKS,
    ML_BUDGET_LEFT_BLOCKS,
    ML_BUDGET_TOTAL_BLOCKS,
    ML_BUDGET_FIGURES
};

struct ml_budget_limit {
    enum ml_budget_figure figure;
    bool is_growth;  /* against the base */
    bool is_percent; /* of the base's figure */
    uint64_t most;   /* bytes, blocks or percent */
};

enum { ML_BUDGET_LIMITS_MAX = 2 * ML_BUDGET_FIGURES };

/* "1M", "1000" blocks, or "5%" where the limit is of growth, into the limit. False: it is none. */
bool ml_budget_limit_read(struct ml_budget_limit *limit, const char *text);

struct ml_budget_rule {
    char *name;    /* never NULL */
    unsigned line; /* of the file, from 1 */
    bool has[ML_BUDGET_KEYS];
    struct ml_pattern patterns[ML_BUDGET_KEYS];
    bool has_role, has_component;
    bool is_of_all_stacks; /* the stacks that were loaded count, not the processes' own figures */
    uint32_t role;         /* enum memlog_service_role */
    enum ml_component component; /* of ML_BUDGET_PRIVATE_BYTES */
    struct ml_budget_limit limits[ML_BUDGET_LIMITS_MAX];
    size_t limits_count;
};

struct ml_budget_rules {
    struct ml_budget_rule *rules;
    size_t rules_count, rules_capacity;
};

enum { ML_BUDGET_MAX_BYTES = 1 << 20, ML_BUDGET_RULES_MAX = 1024 };

/* Read a budget from its JSON. `file` names it in messages. False: an error message names file,
 * line and rule; _fini is needed even then. */
bool ml_budget_read(
    struct ml_budget_rules *budget,
    const char *bytes,
    size_t count_bytes,
    const char *file,
    struct ml_error_message *error
);
void ml_budget_fini(struct ml_budget_rules *budget);

/* The limits of all its rules. */
size_t ml_budget_limits(const struct ml_budget_rules *budget);

/* "peak", "left blocks", ... */
const char *ml_budget_figure_name(enum ml_budget_figure figure);

static inline bool ml_budget_is_of_blocks(enum ml_budget_figure figure) {
    return figure >= ML_BUDGET_PEAK_BLOCKS;
}

/* Whether the rule is about stacks rather than whole processes. */
static inline bool ml_budget_is_of_stacks(const struct ml_budget_rule *rule) {
    return rule->is_of_all_stacks || rule->has[ML_BUDGET_FUNCTION] || rule->has[ML_BUDGET_MODULE] ||
           rule->has[ML_BUDGET_TYPE] || rule->has[ML_BUDGET_HEAP];
}

/* Whether it judges each process by itself rather than all together. */
static inline bool ml_budget_is_of_processes(const struct ml_budget_rule *rule) {
    return rule->has[ML_BUDGET_PROCESS] || rule->has_role;
}

/* A limit as people write it: "48.0 MiB", "1,000 blocks", "5 %". */
enum { ML_BUDGET_TEXT_BYTES = 64 };
const char *
ml_budget_limit_text(const struct ml_budget_limit *limit, char out_text[ML_BUDGET_TEXT_BYTES]);

/* A figure's value likewise. */
const char *ml_budget_value_text(
    enum ml_budget_figure figure, double value, char out_text[ML_BUDGET_TEXT_BYTES]
);

#endif
