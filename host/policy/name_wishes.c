#include "host/policy/name_wishes.h"

#include <string.h>

void ml_name_wishes_remove(struct ml_name_wishes *wishes, const char *regex) {
    for (size_t i = 0; i < wishes->count; i++) {
        if (strcmp(wishes->items[i].regex, regex) != 0) {
            continue;
        }
        const size_t behind = wishes->count - i - 1;
        ml_patterns_free(wishes->patterns[i]);
        memmove(&wishes->items[i], &wishes->items[i + 1], behind * sizeof(wishes->items[0]));
        for (size_t j = i; j + 1 < wishes->count; j++) {
            wishes->patterns[j] = wishes->patterns[j + 1];
        }
        wishes->count--;
        return;
    }
}

enum ml_status ml_name_wishes_add(
    struct ml_name_wishes *wishes, const struct ml_name_wish *wish, struct ml_complaint *complaint
) {
    struct ml_patterns *pattern = ml_patterns_new();
    if (pattern == NULL) {
        return ML_ENV_MEMORY;
    }
    enum ml_status status = ML_OK;
    if (wish->regex[0] == '\0') {
        ml_complain(complaint, "an empty expression names nobody in particular");
        status = ML_PEER_FORM;
    } else {
        status = ml_patterns_add(pattern, wish->regex, 0, complaint);
    }
    if (status != ML_OK) {
        ml_patterns_free(pattern);
        return status;
    }
    ml_name_wishes_remove(wishes, wish->regex);
    if (wishes->count == ML_NAME_WISHES_MAX) {
        ml_complain(complaint, "%d names are wanted already", ML_NAME_WISHES_MAX);
        ml_patterns_free(pattern);
        return ML_PEER_LIMIT;
    }
    wishes->items[wishes->count] = *wish;
    wishes->patterns[wishes->count++] = pattern;
    return ML_OK;
}

const struct ml_name_wish *ml_name_wishes_find(
    const struct ml_name_wishes *wishes, const char *name, const char *command_line
) {
    for (size_t i = wishes->count; i > 0; i--) {
        const struct ml_patterns *pattern = wishes->patterns[i - 1];
        if ((name != NULL && ml_patterns_match(pattern, name) >= 0) ||
            (command_line != NULL && ml_patterns_match(pattern, command_line) >= 0)) {
            return &wishes->items[i - 1];
        }
    }
    return NULL;
}

void ml_name_wishes_fini(struct ml_name_wishes *wishes) {
    for (size_t i = 0; i < wishes->count; i++) {
        ml_patterns_free(wishes->patterns[i]);
    }
    wishes->count = 0;
}
