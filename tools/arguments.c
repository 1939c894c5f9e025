#include "tools/arguments.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

static const char *complain(
    char out_complaint[ML_COMPLAINT_BYTES], const char *before, const char *word, const char *after
) {
    snprintf(out_complaint, ML_COMPLAINT_BYTES, "%s%.100s%s", before, word, after);
    return out_complaint;
}

static const char *unknown_option(
    const char *word,
    const struct ml_option *options,
    size_t options_count,
    char out_complaint[ML_COMPLAINT_BYTES]
) {
    const char *names[32];
    char name[ML_SUGGEST_WORD_MAX + 1];
    const char *nearest = NULL;
    size_t count = options_count < 32 ? options_count : 32;

    for (size_t i = 0; i < count; i++) {
        names[i] = options[i].name;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    nearest = ml_suggest(name, names, count);
    if (nearest) {
        snprintf(
            out_complaint,
            ML_COMPLAINT_BYTES,
            "unknown option %.100s; did you mean %.60s?",
            word,
            nearest
        );
        return out_complaint;
    }
    return complain(out_complaint, "unknown option ", word, "");
}

static const struct ml_option *
option_find(const char *word, const struct ml_option *options, size_t options_count) {
    size_t name_bytes = strcspn(word, "=");

    for (size_t i = 0; i < options_count; i++) {
        if ((strlen(options[i].name) == name_bytes &&
             strncmp(options[i].name, word, name_bytes) == 0) ||
            (options[i].short_name && strcmp(options[i].short_name, word) == 0)) {
            return &options[i];
        }
    }
    return NULL;
}

/* Take an option's value; *at moves on when it is the next word. */
static const char *option_take(
    const struct ml_option *option,
    int argc,
    char **argv,
    int *at,
    char out_complaint[ML_COMPLAINT_BYTES]
) {
    const char *equals = strchr(argv[*at], '=');

    if (option->out_given) {
        *option->out_given = true;
    }
    if (!option->out_value) {
        return equals ? complain(out_complaint, "", option->name, " takes no value") : NULL;
    }
    if (equals) {
        *option->out_value = equals + 1;
        return NULL;
    }
    if (*at + 1 >= argc) {
        return complain(out_complaint, "", option->name, " needs a value");
    }
    *option->out_value = argv[++*at];
    return NULL;
}

const char *ml_arguments_read(
    int argc,
    char **argv,
    const struct ml_option *options,
    size_t options_count,
    const char **out_files,
    size_t files_max,
    size_t *out_files_count,
    char out_complaint[ML_COMPLAINT_BYTES]
) {
    bool only_files = false;

    *out_files_count = 0;
    for (int at = 0; at < argc; at++) {
        const char *word = argv[at];
        const struct ml_option *option = NULL;
        const char *complaint = NULL;

        if (!only_files && strcmp(word, "--") == 0) {
            only_files = true;
            continue;
        }
        if (only_files || word[0] != '-' || word[1] == '\0') {
            if (*out_files_count == files_max) {
                return complain(out_complaint, "one file too many: ", word, "");
            }
            out_files[(*out_files_count)++] = word;
            continue;
        }
        option = option_find(word, options, options_count);
        if (!option) {
            return unknown_option(word, options, options_count, out_complaint);
        }
        complaint = option_take(option, argc, argv, &at, out_complaint);
        if (complaint) {
            return complaint;
        }
    }
    return NULL;
}
