#include "host/policy/patterns.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

struct pattern {
    regex_t regex;
    char *text; /* the expression */
    int number;
};

struct ml_patterns {
    struct pattern *items;
    size_t count;
};

struct ml_patterns *ml_patterns_new(void) {
    return calloc(1, sizeof(struct ml_patterns));
}

void ml_patterns_free(struct ml_patterns *take_patterns) {
    if (take_patterns == NULL) {
        return;
    }
    for (size_t i = 0; i < take_patterns->count; i++) {
        regfree(&take_patterns->items[i].regex);
        free(take_patterns->items[i].text);
    }
    free(take_patterns->items);
    free(take_patterns);
}

enum ml_status ml_patterns_add(
    struct ml_patterns *patterns, const char *regex, int number, struct ml_error_message *error
) {
    struct pattern *items =
        reallocarray(patterns->items, patterns->count + 1, sizeof(*patterns->items));
    if (items == NULL) {
        return ML_ENV_MEMORY;
    }
    patterns->items = items;
    struct pattern *item = &items[patterns->count];
    int error_number = regcomp(&item->regex, regex, REG_EXTENDED | REG_NOSUB);
    if (error_number != 0) {
        char text[256];
        (void)regerror(error_number, &item->regex, text, sizeof(text));
        ml_error_set(error, "'%s' is no regular expression: %s", regex, text);
        return ML_PEER_FORM;
    }
    item->text = strdup(regex);
    if (item->text == NULL) {
        regfree(&item->regex);
        return ML_ENV_MEMORY;
    }
    item->number = number;
    patterns->count++;
    return ML_OK;
}

size_t ml_patterns_count(const struct ml_patterns *patterns) {
    return patterns->count;
}

const char *ml_patterns_text(const struct ml_patterns *patterns, size_t index) {
    return patterns->items[index].text;
}

/* The first that matches; NULL: none does. */
static const struct pattern *find(const struct ml_patterns *patterns, const char *text) {
    for (size_t i = 0; i < patterns->count; i++) {
        if (regexec(&patterns->items[i].regex, text, 0, NULL, 0) == 0) {
            return &patterns->items[i];
        }
    }
    return NULL;
}

const char *ml_patterns_matching(const struct ml_patterns *patterns, const char *text) {
    const struct pattern *pattern = find(patterns, text);
    return pattern != NULL ? pattern->text : NULL;
}

int ml_patterns_match(const struct ml_patterns *patterns, const char *text) {
    const struct pattern *pattern = find(patterns, text);
    return pattern != NULL ? pattern->number : -1;
}
