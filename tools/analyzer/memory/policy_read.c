/* Policies from JSON: memlog's own and dmprof's. Room: tools. */
#include <jansson.h>

#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "tools/analyzer/memory/json_comments.h"
#include "tools/analyzer/memory/policy.h"
#include "tools/analyzer/memory/policy_internal.h"

#define OWN_VERSION "POLICY_MEMLOG_1"
#define DMPROF_VERSION "POLICY_DEEP_"

static const char *const key_words[ML_POLICY_KEYS] = {
    [ML_POLICY_STACK_FUNCTION] = "stackfunction",
    [ML_POLICY_STACK_SOURCE_FILE] = "stacksourcefile",
    [ML_POLICY_STACK_MODULE] = "stackmodule",
    [ML_POLICY_TYPE_INFO] = "typeinfo",
    [ML_POLICY_MAPPED_PATH] = "mappedpathname",
    [ML_POLICY_MAPPED_PERMISSION] = "mappedpermission",
    [ML_POLICY_VMA_NAME] = "vmaname",
    [ML_POLICY_SHARED_WITH] = "sharedwith",
    [ML_POLICY_KIND] = "kind"};

/* A policy while it is read. */
struct reading {
    struct ml_policy *policy;
    const char *file;
    struct ml_error_message *error;
    bool is_dmprof;
    size_t number;    /* of the rule, from 1 */
    const char *name; /* of the rule */
};

__attribute__((format(printf, 2, 3))) static bool
fail(const struct reading *reading, const char *format, ...) {
    char why[1024];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (reading->number == 0) {
        ml_error_set(reading->error, "%s: %s", reading->file, why);
    } else {
        ml_error_set(
            reading->error,
            "%s: rule %zu ('%.200s'): %s",
            reading->file,
            reading->number,
            reading->name,
            why
        );
    }
    return false;
}

/* A rule without a name yet. NULL: there are too many, or no memory. */
static struct ml_policy_rule *rule_new(struct reading *reading) {
    struct ml_policy *policy = reading->policy;

    if (policy->rules_count >= ML_POLICY_RULES_MAX) {
        (void)fail(reading, "a policy has at most %d rules", ML_POLICY_RULES_MAX);
        return NULL;
    }
    if (!ML_GROW(policy->rules, policy->rules_capacity, policy->rules_count + 1)) {
        (void)fail(reading, "out of memory");
        return NULL;
    }
    policy->rules[policy->rules_count] = (struct ml_policy_rule){.name = NULL};
    return &policy->rules[policy->rules_count++];
}

static bool pattern_add(
    struct reading *reading, struct ml_policy_rule *rule, enum ml_policy_key key, const char *text
) {
    struct ml_error_message why = {.text = ""};

    if (rule->has[key]) {
        return fail(reading, "'%s' is there twice", key_words[key]);
    }
    if (!ml_pattern_init(&rule->patterns[key], text, &why)) {
        return fail(reading, "'%s': \"%.200s\": %.300s", key_words[key], text, why.text);
    }
    rule->has[key] = true;
    return true;
}

/* "malloc", or several with | between them. dmprof's "optional" are figures that it computes: no
 * row is one. */
static bool allocator_read(struct reading *reading, struct ml_policy_rule *rule, const char *text) {
    rule->allocators = 0;
    if (reading->is_dmprof && (strcmp(text, "optional") == 0 || strcmp(text, "default") == 0)) {
        return true;
    }
    for (const char *at = text; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        const size_t count = strcspn(at, "|");
        unsigned bit = 0;
        for (unsigned i = 0; i < ML_ROW_ALLOCATORS; i++) {
            const char *name = ml_row_allocator_name(i);
            bit |= strlen(name) == count && memcmp(name, at, count) == 0 ? 1U << i : 0;
        }
        if (bit == 0) {
            return fail(
                reading,
                "'allocator' is '%.*s', not malloc, slack, mmap or unhooked",
                count < 100 ? (int)count : 100,
                at
            );
        }
        rule->allocators |= bit;
    }
    return true;
}

/* dmprof has a list of words there. */
static bool
shared_with_read(struct reading *reading, struct ml_policy_rule *rule, const json_t *value) {
    char text[256] = "";

    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *word = json_string_value(json_array_get(value, i));
        if (!word || strlen(text) + strlen(word) + 2 > sizeof text) {
            return fail(reading, "'sharedwith' is no list of words");
        }
        strcat(text, i > 0 ? "|" : "");
        strcat(text, word);
    }
    return json_array_size(value) == 0 || pattern_add(reading, rule, ML_POLICY_SHARED_WITH, text);
}

static bool no_key(const struct reading *reading, const char *key) {
    const char *words[ML_POLICY_KEYS + 2];

    memcpy(words, key_words, sizeof key_words);
    words[ML_POLICY_KEYS] = "name";
    words[ML_POLICY_KEYS + 1] = "allocator";
    const char *nearest = ml_suggest(key, words, ML_POLICY_KEYS + 2);
    return fail(
        reading,
        nearest ? "'%.100s' is no key of a rule; did you mean '%s'?"
                : "'%.100s' is no key of a rule",
        key,
        nearest
    );
}

static bool member_read(
    struct reading *reading, struct ml_policy_rule *rule, const char *key, const json_t *value
) {
    const char *text = json_string_value(value);

    if (strcmp(key, "sharedwith") == 0 && json_is_array(value)) {
        return shared_with_read(reading, rule, value);
    }
    if (strcmp(key, "name") == 0 || strcmp(key, "comment") == 0) {
        return true;
    }
    for (size_t i = 0; i < ML_POLICY_KEYS; i++) {
        const bool is_old = i == ML_POLICY_STACK_FUNCTION && strcmp(key, "stacktrace") == 0;
        if (is_old || strcmp(key, key_words[i]) == 0) {
            return text ? pattern_add(reading, rule, (enum ml_policy_key)i, text)
                        : fail(reading, "'%s' is no text", key);
        }
    }
    if (strcmp(key, "allocator") == 0) {
        return text ? allocator_read(reading, rule, text) : fail(reading, "'allocator' is no text");
    }
    return no_key(reading, key);
}

static bool rule_read(struct reading *reading, json_t *from) {
    const char *name = json_string_value(json_object_get(from, "name"));
    struct ml_policy_rule *rule = NULL;
    const char *key = NULL;
    json_t *value = NULL;

    reading->name = name ? name : "";
    if (!json_is_object(from) || !name || !name[0]) {
        return fail(reading, "a rule is an object with a 'name'");
    }
    rule = rule_new(reading);
    if (!rule) {
        return false;
    }
    rule->allocators = (1U << ML_ROW_ALLOCATORS) - 1;
    rule->name = strdup(name);
    if (!rule->name) {
        return fail(reading, "out of memory");
    }
    json_object_foreach(from, key, value) {
        if (!member_read(reading, rule, key, value)) {
            return false;
        }
    }
    return true;
}

static bool component_add(const struct reading *reading, const char *name) {
    struct ml_string_table *components = &reading->policy->components;

    return ml_string_table_copy(components, name, strlen(name)) != ML_STRING_NONE ||
           fail(reading, "out of memory");
}

static bool is_made(const struct ml_policy *policy, const char *name) {
    for (size_t i = 0; i < policy->rules_count; i++) {
        if (policy->rules[i].allocators != 0 && strcmp(policy->rules[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The order of components: of the list, then of rules that are not in it. */
static bool components_read(struct reading *reading, const json_t *list) {
    const struct ml_policy *policy = reading->policy;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name) {
            return fail(reading, "'components' is no list of names");
        }
        if (is_made(policy, name)) {
            if (!strstr(name, ML_POLICY_MODULE) && !component_add(reading, name)) {
                return false;
            }
        } else if (!reading->is_dmprof) {
            return fail(reading, "no rule makes the component '%.200s'", name);
        }
    }
    for (size_t i = 0; i < policy->rules_count; i++) {
        const struct ml_policy_rule *rule = &policy->rules[i];
        if (rule->allocators != 0 && !strstr(rule->name, ML_POLICY_MODULE) &&
            !component_add(reading, rule->name)) {
            return false;
        }
    }
    return true;
}

/* What dmprof computed by itself. */
static const struct computed {
    const char *name, *old_name; /* as a component */
    const char *allocator, *path, *permission;
} computed[] = {
    {"tc-unused", "tc-unused", "slack", NULL, NULL},
    {"unhooked-anonymous", "nonprofiled-anonymous", "unhooked", "", NULL},
    {"unhooked-file-exec", "nonprofiled-file-exec", "unhooked", "/.*", "..x."},
    {"unhooked-file-nonexec", "nonprofiled-file-nonexec", "unhooked", "/.*", NULL},
    {"unhooked-stack", "nonprofiled-stack", "unhooked", ".stack.*", NULL},
    {"unhooked-other", "nonprofiled-other", "unhooked", NULL, NULL},
};

static bool is_listed(const json_t *list, const char *name) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *one = json_string_value(json_array_get(list, i));
        if (one && strcmp(one, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A rule behind the others for each such figure that a policy of dmprof lists. */
static bool computed_add(struct reading *reading, const json_t *list) {
    for (size_t i = 0; i < sizeof computed / sizeof computed[0]; i++) {
        const struct computed *one = &computed[i];
        const char *name = is_listed(list, one->name) ? one->name : one->old_name;
        struct ml_policy_rule *rule = NULL;

        if (!is_listed(list, name)) {
            continue;
        }
        reading->name = name;
        rule = rule_new(reading);
        if (!rule || !allocator_read(reading, rule, one->allocator)) {
            return false;
        }
        rule->name = strdup(name);
        if (!rule->name) {
            return fail(reading, "out of memory");
        }
        if ((one->path && !pattern_add(reading, rule, ML_POLICY_MAPPED_PATH, one->path)) ||
            (one->permission &&
             !pattern_add(reading, rule, ML_POLICY_MAPPED_PERMISSION, one->permission))) {
            return false;
        }
    }
    return true;
}

static bool top_keys_check(const struct reading *reading, json_t *root) {
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(root, key, value) {
        if (strcmp(key, "version") != 0 && strcmp(key, "components") != 0 &&
            strcmp(key, "rules") != 0 && strcmp(key, "comment") != 0) {
            return fail(reading, "'%.100s' is no key of a policy", key);
        }
    }
    return true;
}

static bool root_read(struct reading *reading, json_t *root) {
    const char *version = json_string_value(json_object_get(root, "version"));
    const json_t *components = json_object_get(root, "components");
    json_t *rules = json_object_get(root, "rules");

    if (!json_is_object(root) || !version) {
        return fail(reading, "this is no policy: it has no \"version\": \"" OWN_VERSION "\"");
    }
    reading->is_dmprof = strncmp(version, DMPROF_VERSION, sizeof DMPROF_VERSION - 1) == 0;
    if (!reading->is_dmprof && strcmp(version, OWN_VERSION) != 0) {
        return fail(reading, "version '%.100s' is neither " OWN_VERSION " nor dmprof's", version);
    }
    if (!reading->is_dmprof && !top_keys_check(reading, root)) {
        return false;
    }
    if (!json_is_array(rules) || (components && !json_is_array(components))) {
        return fail(reading, "'rules' and 'components' are lists");
    }
    for (size_t i = 0; i < json_array_size(rules); i++) {
        reading->number = i + 1;
        if (!rule_read(reading, json_array_get(rules, i))) {
            return false;
        }
    }
    reading->number = 0;
    return (!reading->is_dmprof || computed_add(reading, components)) &&
           components_read(reading, components) &&
           ml_policy_check(reading->policy, reading->file, reading->error);
}

bool ml_policy_read(
    struct ml_policy *policy,
    const char *bytes,
    size_t count_bytes,
    const char *file,
    struct ml_error_message *error
) {
    struct reading reading = {.policy = policy, .file = file, .error = error};
    json_error_t where;

    *policy = (struct ml_policy){0};
    if (count_bytes > ML_POLICY_MAX_BYTES) {
        return fail(&reading, "it is larger than %d bytes", ML_POLICY_MAX_BYTES);
    }
    char *copy = malloc(count_bytes + 1);
    if (!copy) {
        return fail(&reading, "out of memory");
    }
    memcpy(copy, bytes, count_bytes);
    ml_json_drop_comments(copy, count_bytes);
    json_t *root = json_loadb(copy, count_bytes, JSON_REJECT_DUPLICATES, &where);
    free(copy);
    if (!root) {
        return fail(&reading, "line %d: %s", where.line, where.text);
    }
    const bool done = root_read(&reading, root);
    json_decref(root);
    return done;
}
