/* Budgets from JSON. Room: tools. */
#include <jansson.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/suggest.h"
#include "tools/analyzer/budget/budget.h"
#include "tools/analyzer/memory/json_comments.h"
#include "tools/analyzer/model/memory.h"

#define VERSION "BUDGET_MEMLOG_1"
#define GROWTH "_growth"

enum { PERCENT_MAX = 1000000, WORDS_MAX = 40 };

static const char *const key_words[ML_BUDGET_KEYS] = {
    [ML_BUDGET_PROCESS] = "process",
    [ML_BUDGET_FUNCTION] = "function",
    [ML_BUDGET_MODULE] = "module",
    [ML_BUDGET_TYPE] = "type",
    [ML_BUDGET_HEAP] = "heap"};

/* A budget while it is read. */
struct reading {
    struct ml_budget_rules *budget;
    const char *file;
    struct ml_error_message *error;
    const char *bytes; /* the whole text, valid JSON */
    size_t count_bytes;
    size_t number;    /* of the rule, from 1; 0: in none */
    unsigned line;    /* of the rule */
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
            "%s:%u: rule %zu ('%.200s'): %s",
            reading->file,
            reading->line,
            reading->number,
            reading->name,
            why
        );
    }
    return false;
}

/* The line on which rule `number` begins: the elements of the list that is in the object are
 * counted. Jansson keeps no positions. */
static unsigned line_of(const struct reading *reading, size_t number) {
    unsigned line = 1;
    size_t depth = 0, found = 0;
    bool in_text = false, is_awaited = false;

    for (size_t i = 0; i < reading->count_bytes; i++) {
        const char byte = reading->bytes[i];
        line += byte == '\n';
        if (in_text) {
            i += byte == '\\';
            in_text = byte != '"';
            continue;
        }
        if (is_awaited && !strchr(" \t\r\n", byte)) {
            is_awaited = false;
            found++;
        }
        if (found == number) {
            break;
        }
        in_text = byte == '"';
        depth += byte == '{' || byte == '[';
        depth -= byte == '}' || byte == ']';
        is_awaited = is_awaited || (depth == 2 && (byte == '[' || byte == ','));
    }
    return line;
}

/* The figure of a limit's key, "peak_growth"; false: it is none. */
static bool limit_of(const char *key, struct ml_budget_limit *out_limit) {
    const size_t count = strlen(key);
    const size_t behind = sizeof GROWTH - 1;
    const bool is_growth = count > behind && strcmp(key + count - behind, GROWTH) == 0;

    for (unsigned i = 0; i < ML_BUDGET_FIGURES; i++) {
        const char *name = ml_budget_figure_name(i);
        const size_t bytes = is_growth ? count - behind : count;
        if (strlen(name) == bytes && memcmp(name, key, bytes) == 0) {
            *out_limit = (struct ml_budget_limit){.figure = i, .is_growth = is_growth};
            return true;
        }
    }
    return false;
}

static bool percent_read(const char *text, uint64_t *out_percent) {
    char number[16];
    const size_t count = strlen(text);

    if (count < 2 || count > sizeof number || text[count - 1] != '%') {
        return false;
    }
    snprintf(number, sizeof number, "%.*s", (int)count - 1, text);
    return ml_count_read(number, PERCENT_MAX, out_percent);
}

bool ml_budget_limit_read(struct ml_budget_limit *limit, const char *text) {
    if (limit->is_growth && strchr(text, '%')) {
        limit->is_percent = true;
        return percent_read(text, &limit->most);
    }
    return ml_budget_is_of_blocks(limit->figure) ? ml_count_read(text, INT64_MAX, &limit->most)
                                                 : ml_size_read(text, &limit->most);
}

static bool limit_read(
    struct reading *reading,
    struct ml_budget_rule *rule,
    struct ml_budget_limit limit,
    const char *key,
    const json_t *value
) {
    const char *text = json_string_value(value);
    const bool is_of_blocks = ml_budget_is_of_blocks(limit.figure);
    bool done = false;

    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        limit.most = (uint64_t)json_integer_value(value);
        done = true;
    } else if (text) {
        done = ml_budget_limit_read(&limit, text);
    }
    if (!done) {
        return fail(
            reading,
            "'%s' wants %s%s",
            key,
            is_of_blocks ? "a number of blocks, such as 1000" : "a size, such as \"48M\" or 4096",
            limit.is_growth ? ", or a share such as \"5%\"" : ""
        );
    }
    rule->limits[rule->limits_count++] = limit;
    return true;
}

static bool role_read(struct reading *reading, struct ml_budget_rule *rule, const char *text) {
    static const uint32_t roles[] = {
        MEMLOG_SERVICE_ROLE_BROWSER,
        MEMLOG_SERVICE_ROLE_RENDERER,
        MEMLOG_SERVICE_ROLE_GPU,
        MEMLOG_SERVICE_ROLE_UTILITY,
        MEMLOG_SERVICE_ROLE_OTHER};

    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(text, ml_profile_role_name(roles[i])) == 0) {
            rule->has_role = true;
            rule->role = roles[i];
            return true;
        }
    }
    return fail(reading, "'role' is '%.100s', not browser, renderer, gpu, utility or other", text);
}

static bool component_read(struct reading *reading, struct ml_budget_rule *rule, const char *text) {
    const char *words[ML_COMPONENTS];
    const char *nearest = NULL;

    for (unsigned i = 0; i < ML_COMPONENTS; i++) {
        words[i] = ml_component_name(i);
        if (strcmp(text, words[i]) == 0) {
            rule->has_component = true;
            rule->component = i;
            return true;
        }
    }
    nearest = ml_suggest(text, words, ML_COMPONENTS);
    return fail(
        reading,
        "'%.100s' is no component%s%s%s; memlog components lists them",
        text,
        nearest ? " (did you mean '" : "",
        nearest ? nearest : "",
        nearest ? "'?)" : ""
    );
}

static bool no_key(const struct reading *reading, const char *key) {
    const char *words[WORDS_MAX] = {"name", "role", "component", "comment"};
    char growths[ML_BUDGET_FIGURES][32];
    const char *nearest = NULL;
    size_t count = 4;

    for (unsigned i = 0; i < ML_BUDGET_KEYS; i++) {
        words[count++] = key_words[i];
    }
    for (unsigned i = 0; i < ML_BUDGET_FIGURES; i++) {
        snprintf(growths[i], sizeof growths[i], "%s" GROWTH, ml_budget_figure_name(i));
        words[count++] = ml_budget_figure_name(i);
        words[count++] = growths[i];
    }
    nearest = ml_suggest(key, words, count);
    return fail(
        reading,
        "'%.100s' is no key of a rule%s%s%s; docs/budgets.md lists them",
        key,
        nearest ? " (did you mean '" : "",
        nearest ? nearest : "",
        nearest ? "'?)" : ""
    );
}

static bool pattern_read(
    struct reading *reading, struct ml_budget_rule *rule, enum ml_budget_key key, const char *text
) {
    struct ml_error_message why = {.text = ""};

    if (!ml_pattern_init(&rule->patterns[key], text, &why)) {
        return fail(reading, "'%s': \"%.200s\": %.300s", key_words[key], text, why.text);
    }
    rule->has[key] = true;
    return true;
}

static bool member_read(
    struct reading *reading, struct ml_budget_rule *rule, const char *key, const json_t *value
) {
    const char *text = json_string_value(value);
    struct ml_budget_limit limit;

    if (strcmp(key, "name") == 0 || strcmp(key, "comment") == 0) {
        return text || fail(reading, "'%s' is no text", key);
    }
    if (limit_of(key, &limit)) {
        return limit_read(reading, rule, limit, key, value);
    }
    for (size_t i = 0; i < ML_BUDGET_KEYS; i++) {
        if (strcmp(key, key_words[i]) == 0) {
            return text ? pattern_read(reading, rule, i, text)
                        : fail(reading, "'%s' is no text", key);
        }
    }
    if (strcmp(key, "role") == 0) {
        return text ? role_read(reading, rule, text) : fail(reading, "'role' is no text");
    }
    if (strcmp(key, "component") == 0) {
        return text ? component_read(reading, rule, text) : fail(reading, "'component' is no text");
    }
    return no_key(reading, key);
}

/* What a limit may be about depends on whose it is. */
static bool limits_check(const struct reading *reading, const struct ml_budget_rule *rule) {
    if (rule->limits_count == 0) {
        return fail(
            reading,
            "it has no limit; \"peak\", \"left\", \"total\" and \"private\" are some, and "
            "docs/budgets.md lists all"
        );
    }
    if (rule->has_component && ml_budget_is_of_stacks(rule)) {
        return fail(reading, "'component' goes with 'process' and 'role' only");
    }
    for (size_t i = 0; i < rule->limits_count; i++) {
        const bool is_private = rule->limits[i].figure == ML_BUDGET_PRIVATE_BYTES;
        if (rule->has_component && !is_private) {
            return fail(reading, "a component's limits are 'private' and 'private" GROWTH "'");
        }
        if (is_private && ml_budget_is_of_stacks(rule)) {
            return fail(
                reading, "'private' is of processes and components, not of functions and the like"
            );
        }
    }
    return true;
}

/* A rule without a name is called by what it is about. */
static char *name_of(const json_t *from) {
    static const char *const about[] = {
        "function", "module", "type", "heap", "component", "process", "role"};
    const char *name = json_string_value(json_object_get(from, "name"));

    for (size_t i = 0; !name && i < sizeof about / sizeof about[0]; i++) {
        name = json_string_value(json_object_get(from, about[i]));
    }
    return strdup(name && name[0] ? name : "all processes");
}

static bool rule_read(struct reading *reading, json_t *from) {
    struct ml_budget_rules *budget = reading->budget;
    struct ml_budget_rule *rule = NULL;
    const char *key = NULL;
    json_t *value = NULL;

    reading->name = "";
    reading->line = line_of(reading, reading->number);
    if (!json_is_object(from)) {
        return fail(reading, "a rule is an object: {\"process\": \"server\", \"peak\": \"48M\"}");
    }
    if (!ML_GROW(budget->rules, budget->rules_capacity, budget->rules_count + 1)) {
        return fail(reading, "out of memory");
    }
    rule = &budget->rules[budget->rules_count++];
    *rule = (struct ml_budget_rule){.name = name_of(from), .line = reading->line};
    if (!rule->name) {
        return fail(reading, "out of memory");
    }
    reading->name = rule->name;
    json_object_foreach(from, key, value) {
        if (!member_read(reading, rule, key, value)) {
            return false;
        }
    }
    return limits_check(reading, rule);
}

static bool root_read(struct reading *reading, json_t *root) {
    const char *version = json_string_value(json_object_get(root, "version"));
    json_t *rules = json_object_get(root, "budgets");
    const char *key = NULL;
    json_t *value = NULL;

    if (!version || strcmp(version, VERSION) != 0) {
        return fail(reading, "this is no budget: it has no \"version\": \"" VERSION "\"");
    }
    json_object_foreach(root, key, value) {
        if (strcmp(key, "version") != 0 && strcmp(key, "budgets") != 0 &&
            strcmp(key, "comment") != 0) {
            return fail(
                reading, "'%.100s' is no key of a budget; version, budgets, comment are", key
            );
        }
        if (key[0] == 'c' && !json_is_string(value)) {
            return fail(reading, "'comment' is no text");
        }
    }
    if (!json_is_array(rules) || json_array_size(rules) == 0) {
        return fail(reading, "'budgets' is a list of one rule at least");
    }
    if (json_array_size(rules) > ML_BUDGET_RULES_MAX) {
        return fail(reading, "a budget has at most %d rules", ML_BUDGET_RULES_MAX);
    }
    for (size_t i = 0; i < json_array_size(rules); i++) {
        reading->number = i + 1;
        if (!rule_read(reading, json_array_get(rules, i))) {
            return false;
        }
    }
    return true;
}

bool ml_budget_read(
    struct ml_budget_rules *budget,
    const char *bytes,
    size_t count_bytes,
    const char *file,
    struct ml_error_message *error
) {
    struct reading reading = {
        .budget = budget, .file = file, .error = error, .count_bytes = count_bytes};
    json_error_t where;

    *budget = (struct ml_budget_rules){0};
    if (count_bytes > ML_BUDGET_MAX_BYTES) {
        return fail(&reading, "it is larger than %d bytes", ML_BUDGET_MAX_BYTES);
    }
    char *copy = malloc(count_bytes + 1);
    if (!copy) {
        return fail(&reading, "out of memory");
    }
    memcpy(copy, bytes, count_bytes);
    ml_json_drop_comments(copy, count_bytes);
    reading.bytes = copy;
    json_t *root = json_loadb(copy, count_bytes, JSON_REJECT_DUPLICATES, &where);
    bool done = false;
    if (root) {
        done = root_read(&reading, root);
    } else {
        ml_error_set(error, "%s:%d: %s", file, where.line, where.text);
    }
    json_decref(root);
    free(copy);
    return done;
}
