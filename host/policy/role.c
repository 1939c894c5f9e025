#include "host/policy/role.h"

#include <string.h>

#include "base/suggest.h"

const char *const ml_role_names[] = {MEMLOG_SERVICE_ROLE_WORDS, NULL};
_Static_assert(sizeof(ml_role_names) / sizeof(ml_role_names[0]) == ML_ROLE_COUNT + 1, "no word");

const char *ml_role_name(enum memlog_service_role role) {
    return (unsigned)role < ML_ROLE_COUNT ? ml_role_names[role] : "?";
}

enum ml_status ml_role_parse(
    const char *name, enum memlog_service_role *out_role, struct ml_error_message *error
) {
    for (unsigned i = 0; i < ML_ROLE_COUNT; i++) {
        if (strcmp(name, ml_role_names[i]) == 0) {
            *out_role = (enum memlog_service_role)i;
            return ML_OK;
        }
    }
    const char *near = ml_suggest(name, ml_role_names, ML_ROLE_COUNT);
    ml_error_set(
        error,
        "'%s' is no role%s%s%s (browser, renderer, gpu, utility, other)",
        name,
        near != NULL ? "; did you mean '" : "",
        near != NULL ? near : "",
        near != NULL ? "'?" : ""
    );
    return ML_ENV_MISSING;
}

static const struct {
    const char *type;
    enum memlog_service_role role;
} built_in[] = {
    {"renderer", MEMLOG_SERVICE_ROLE_RENDERER},
    {"gpu", MEMLOG_SERVICE_ROLE_GPU},
    {"gpu-process", MEMLOG_SERVICE_ROLE_GPU},
    {"utility", MEMLOG_SERVICE_ROLE_UTILITY},
};

/* The role that the word [word, word + count) names by `--type=NAME`. An unknown type is other. -1:
 * the word has another form. */
static int role_of_word(const char *word, size_t count) {
    static const char prefix[] = "--type=";
    size_t prefix_count = sizeof(prefix) - 1;
    if (count <= prefix_count || strncmp(word, prefix, prefix_count) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(built_in) / sizeof(built_in[0]); i++) {
        const char *type = built_in[i].type;
        if (strlen(type) == count - prefix_count &&
            strncmp(word + prefix_count, type, count - prefix_count) == 0) {
            return (int)built_in[i].role;
        }
    }
    return MEMLOG_SERVICE_ROLE_OTHER;
}

static int role_of_title(const char *title) {
    while (*title != '\0') {
        size_t count = strcspn(title, " ");
        int role = role_of_word(title, count);
        if (role >= 0) {
            return role;
        }
        title += count;
        title += strspn(title, " ");
    }
    return -1;
}

enum memlog_service_role
ml_role_of(const struct ml_patterns *rules, const struct ml_command_line *line, bool is_root) {
    if (line->count > 0 && rules != NULL) {
        int role = ml_patterns_match(rules, line->joined);
        if (role >= 0) {
            return (enum memlog_service_role)role;
        }
    }
    if (is_root) {
        return MEMLOG_SERVICE_ROLE_BROWSER;
    }
    /* A process that sets its title overwrites its arguments, beginning with the first. */
    int role = line->count > 0 ? role_of_title(line->arguments[0]) : -1;
    for (size_t i = 1; i < line->count && role < 0; i++) {
        role = role_of_word(line->arguments[i], strlen(line->arguments[i]));
    }
    return role >= 0 ? (enum memlog_service_role)role : MEMLOG_SERVICE_ROLE_OTHER;
}
