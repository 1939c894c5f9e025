#include "host/policy/name_rules.h"

#include <string.h>

void ml_name_rules_remove(struct ml_name_rules *rules, const char *regex) {
    for (size_t i = 0; i < rules->count; i++) {
        if (strcmp(rules->items[i].regex, regex) != 0) {
            continue;
        }
        const size_t behind = rules->count - i - 1;
        ml_patterns_free(rules->patterns[i]);
        memmove(&rules->items[i], &rules->items[i + 1], behind * sizeof(rules->items[0]));
        for (size_t j = i; j + 1 < rules->count; j++) {
            rules->patterns[j] = rules->patterns[j + 1];
        }
        rules->count--;
        return;
    }
}

enum ml_status ml_name_rules_add(
    struct ml_name_rules *rules, const struct ml_name_rule *rule, struct ml_error_message *error
) {
    struct ml_patterns *pattern = ml_patterns_new();
    if (pattern == NULL) {
        return ML_ENV_MEMORY;
    }
    enum ml_status status = ML_OK;
    if (rule->regex[0] == '\0') {
        ml_error_set(error, "an empty expression names nobody in particular");
        status = ML_PEER_FORM;
    } else {
        status = ml_patterns_add(pattern, rule->regex, 0, error);
    }
    if (status != ML_OK) {
        ml_patterns_free(pattern);
        return status;
    }
    ml_name_rules_remove(rules, rule->regex);
    if (rules->count == ML_NAME_RULES_MAX) {
        ml_error_set(error, "%d names are wanted already", ML_NAME_RULES_MAX);
        ml_patterns_free(pattern);
        return ML_PEER_LIMIT;
    }
    rules->items[rules->count] = *rule;
    rules->patterns[rules->count++] = pattern;
    return ML_OK;
}

const struct ml_name_rule *
ml_name_rules_find(const struct ml_name_rules *rules, const char *name, const char *command_line) {
    for (size_t i = rules->count; i > 0; i--) {
        const struct ml_patterns *pattern = rules->patterns[i - 1];
        if ((name != NULL && ml_patterns_match(pattern, name) >= 0) ||
            (command_line != NULL && ml_patterns_match(pattern, command_line) >= 0)) {
            return &rules->items[i - 1];
        }
    }
    return NULL;
}

void ml_name_rules_fini(struct ml_name_rules *rules) {
    for (size_t i = 0; i < rules->count; i++) {
        ml_patterns_free(rules->patterns[i]);
    }
    rules->count = 0;
}
