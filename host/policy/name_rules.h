/* Programs that somebody wants recorded by name, those that run and those that will. Room: host.
 * Context: the host's one thread.
 *
 * One rule: of two rules that match one process the later counts; the same expression twice is one
 * rule. */
#ifndef MEMLOG_HOST_POLICY_NAME_RULES_H
#define MEMLOG_HOST_POLICY_NAME_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/policy/patterns.h"
#include "ipc/wire/ml_status.h"

/* People type them one at a time. */
enum { ML_NAME_RULES_MAX = 64, ML_NAME_RULE_BYTES = 1024 };

struct ml_name_rule {
    char regex[ML_NAME_RULE_BYTES + 1];
    uint64_t sampling_bytes; /* 0: with the run's settings */
    uint32_t stack_mode;
};

struct ml_name_rules {
    struct ml_name_rule items[ML_NAME_RULES_MAX];
    struct ml_patterns *patterns[ML_NAME_RULES_MAX]; /* one expression each */
    size_t count;
};

/* Errors: ML_PEER_FORM: no regular expression, or an empty one;
 * ML_PEER_LIMIT: too many; each with an error message. ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_name_rules_add(
    struct ml_name_rules *rules, const struct ml_name_rule *rule, struct ml_error_message *error
);

/* The rule of exactly that expression is no more, if there was one. */
void ml_name_rules_remove(struct ml_name_rules *rules, const char *regex);

/* The latest that matches a process of that name or command line, which may be NULL; NULL: none. */
const struct ml_name_rule *
ml_name_rules_find(const struct ml_name_rules *rules, const char *name, const char *command_line);

void ml_name_rules_fini(struct ml_name_rules *rules);

#endif
