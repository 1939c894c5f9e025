/* Rules of `memlog start --name`: which processes to record by name, those that run now and those
 * that start later. Room: host. Context: the host's one thread.
 *
 * One rule: if several rules match a process, the latest applies. Adding an expression again
 * replaces its rule. */
#ifndef MEMLOG_HOST_POLICY_NAME_RULES_H
#define MEMLOG_HOST_POLICY_NAME_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/policy/patterns.h"
#include "ipc/wire/ml_status.h"

/* Enough, because people type the rules one at a time. */
enum { ML_NAME_RULES_MAX = 64, ML_NAME_RULE_BYTES = 1024 };

struct ml_name_rule {
    char regex[ML_NAME_RULE_BYTES + 1];
    uint64_t sampling_bytes; /* 0: the run's settings apply */
    uint32_t stack_mode;
};

struct ml_name_rules {
    struct ml_name_rule items[ML_NAME_RULES_MAX];
    struct ml_patterns *patterns[ML_NAME_RULES_MAX]; /* one expression each */
    size_t count;
};

/* Add a rule.
 *
 * Errors: ML_PEER_FORM not a regular expression, or an empty one; ML_PEER_LIMIT too many rules;
 * each with an error message. ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_name_rules_add(
    struct ml_name_rules *rules, const struct ml_name_rule *rule, struct ml_error_message *error
);

/* Remove the rule of exactly that expression, if there is one. */
void ml_name_rules_remove(struct ml_name_rules *rules, const char *regex);

/* The latest rule that matches the name or the command line of a process. Either may be NULL. NULL:
 * no rule matches. */
const struct ml_name_rule *
ml_name_rules_find(const struct ml_name_rules *rules, const char *name, const char *command_line);

void ml_name_rules_fini(struct ml_name_rules *rules);

#endif
