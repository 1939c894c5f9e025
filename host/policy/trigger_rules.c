#include "host/policy/trigger_rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include <jansson.h>

#include "base/input_file.h"
#include "base/size.h"
#include "base/suggest.h"

enum {
    MIB = 1 << 20,
    SECONDS_MAX = 365 * 24 * 3600,
    KEYS_MAX = 32,
    /* From Chromium's background_profiling_triggers of 2019. */
    BROWSER_MIB = 400,
    GPU_MIB = 400,
    RENDERER_MIB = 500,
    UTILITY_MIB = 250,
    AGAIN_MIB = 500,
    INTERVAL_SECONDS = 15 * 60,
    /* Not Chromium's: processes that die one after another must not fill the disk with dumps. */
    MOST_DUMPS = 20,
    MOST_SECONDS = 3600,
};

enum kind { KIND_SIZE, KIND_COUNT, KIND_FLAG };

/* One value of the file. `section` is "" for a key at the top. */
struct key {
    const char *section, *name;
    enum kind kind;
    size_t offset; /* in struct ml_trigger_rules */
    uint32_t max;  /* of a count; its least value is 1 */
};

#define AT(member) offsetof(struct ml_trigger_rules, service.member)
#define ROLES(section, member)                                                                     \
    {section, "browser", KIND_SIZE, AT(member.browser), 0},                                        \
        {section, "renderer", KIND_SIZE, AT(member.renderer), 0},                                  \
        {section, "gpu", KIND_SIZE, AT(member.gpu), 0},                                            \
        {section, "utility", KIND_SIZE, AT(member.utility), 0}, {                                  \
        section, "other", KIND_SIZE, AT(member.other), 0                                           \
    }

static const struct key keys[] = {
    {"",
     "interval_seconds",
     KIND_COUNT,
     offsetof(struct ml_trigger_rules, interval_seconds),
     SECONDS_MAX},
    {"", "every_seconds", KIND_COUNT, AT(every_seconds), SECONDS_MAX},
    {"", "killed", KIND_FLAG, AT(killed), 0},
    ROLES("footprint", footprint_bytes),
    {"footprint", "again", KIND_SIZE, AT(footprint_again_bytes), 0},
    ROLES("live", live_bytes),
    {"live", "again", KIND_SIZE, AT(live_again_bytes), 0},
    {"growth", "bytes", KIND_SIZE, AT(growth_bytes), 0},
    {"growth", "seconds", KIND_COUNT, AT(growth_seconds), SECONDS_MAX},
    {"limit", "percent", KIND_COUNT, AT(limit_percent), 100},
    {"time_to_limit", "seconds", KIND_COUNT, AT(to_limit_seconds), SECONDS_MAX},
    {"pressure", "some_percent", KIND_COUNT, AT(pressure_some_percent), 100},
    {"pressure", "full_percent", KIND_COUNT, AT(pressure_full_percent), 100},
    {"pressure", "events", KIND_FLAG, AT(pressure_events), 0},
    {"peak", "step", KIND_SIZE, AT(peak_step_bytes), 0},
    {"stack", "bytes", KIND_SIZE, AT(stack_bytes), 0},
    {"control", "one_in", KIND_COUNT, AT(control_one_in), UINT32_MAX},
    {"at_most", "dumps", KIND_COUNT, AT(most_dumps), 256},
    {"at_most", "seconds", KIND_COUNT, AT(most_seconds), SECONDS_MAX},
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

struct ml_trigger_rules ml_trigger_rules_default(void) {
    return (struct ml_trigger_rules
    ){.service =
          {.footprint_bytes =
               {.browser = (uint64_t)BROWSER_MIB * MIB,
                .gpu = (uint64_t)GPU_MIB * MIB,
                .renderer = (uint64_t)RENDERER_MIB * MIB,
                .utility = (uint64_t)UTILITY_MIB * MIB},
           .footprint_again_bytes = (uint64_t)AGAIN_MIB * MIB,
           .live_again_bytes = (uint64_t)AGAIN_MIB * MIB,
           .growth_seconds = MOST_SECONDS,
           .killed = true,
           .most_dumps = MOST_DUMPS,
           .most_seconds = MOST_SECONDS},
      .interval_seconds = INTERVAL_SECONDS};
}

static const struct key *find(const char *section, const char *name) {
    for (size_t i = 0; i < KEYS; i++) {
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

enum ml_status ml_trigger_rules_threshold(
    struct ml_trigger_rules *rules, const char *text, struct ml_error_message *error
) {
    char name[ML_SUGGEST_WORD_MAX];
    const size_t name_count = strcspn(text, "=");
    enum memlog_service_role role = MEMLOG_SERVICE_ROLE_OTHER;
    uint64_t bytes = 0;
    if (text[name_count] == '\0' || name_count >= sizeof(name)) {
        ml_error_set(error, "ROLE=SIZE is wanted, such as browser=400M");
        return ML_PEER_FORM;
    }
    memcpy(name, text, name_count);
    name[name_count] = '\0';
    const enum ml_status status = ml_role_parse(name, &role, error);
    if (status != ML_OK) {
        return status;
    }
    const char *size = text + name_count + 1;
    if (strcmp(size, "off") != 0 && (!ml_size_read(size, &bytes) || bytes == 0)) {
        ml_error_set(error, "a size such as 400M is wanted behind %s=, or off", name);
        return ML_PEER_FORM;
    }
    memcpy((char *)rules + find("footprint", name)->offset, &bytes, sizeof(bytes));
    return ML_OK;
}

/* "section.name". */
static const char *words_of(const char *section, const char *name, char out[64]) {
    (void)snprintf(out, 64, "%.30s%s%.30s", section, section[0] != '\0' ? "." : "", name);
    return out;
}

static bool is_off(const json_t *value) {
    return json_is_false(value) || json_is_null(value) ||
           (json_is_string(value) && strcmp(json_string_value(value), "off") == 0);
}

/* Read a size that is a string or a number of bytes. False: it is neither. */
static bool read_size(const json_t *value, uint64_t *out_bytes) {
    if (json_is_string(value)) {
        return ml_size_read(json_string_value(value), out_bytes) && *out_bytes > 0;
    }
    if (json_is_integer(value) && json_integer_value(value) > 0) {
        *out_bytes = (uint64_t)json_integer_value(value);
        return true;
    }
    return false;
}

static enum ml_status apply(
    struct ml_trigger_rules *rules,
    const struct key *key,
    const json_t *value,
    struct ml_error_message *error
) {
    char *const at = (char *)rules + key->offset;
    char words[64];
    (void)words_of(key->section, key->name, words);
    if (key->kind == KIND_FLAG) {
        if (!json_is_boolean(value)) {
            ml_error_set(error, "\"%s\": true or false is wanted", words);
            return ML_PEER_FORM;
        }
        const bool flag = json_is_true(value);
        memcpy(at, &flag, sizeof(flag));
        return ML_OK;
    }
    if (key->kind == KIND_SIZE) {
        uint64_t bytes = 0;
        if (!is_off(value) && !read_size(value, &bytes)) {
            ml_error_set(error, "\"%s\": a size such as \"400M\" is wanted, or \"off\"", words);
            return ML_PEER_FORM;
        }
        memcpy(at, &bytes, sizeof(bytes));
        return ML_OK;
    }
    const json_int_t number = json_integer_value(value); /* 0 if it is not an integer */
    if (!is_off(value) && (number < 1 || number > (json_int_t)key->max)) {
        ml_error_set(
            error,
            "\"%s\": a whole number from 1 to %" PRIu32 " is wanted, or \"off\"",
            words,
            key->max
        );
        return ML_PEER_RANGE;
    }
    const uint32_t count = (uint32_t)number;
    memcpy(at, &count, sizeof(count));
    return ML_OK;
}

/* The names that are valid in a section: its keys; at the top, also the sections. */
static size_t names_of(const char *section, const char *out_names[KEYS_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < KEYS; i++) {
        const bool here = strcmp(keys[i].section, section) == 0;
        const char *name = here ? keys[i].name : keys[i].section;
        if (!here && (section[0] != '\0' || keys[i].section[0] == '\0')) {
            continue;
        }
        if (count < KEYS_MAX && (count == 0 || strcmp(out_names[count - 1], name) != 0)) {
            out_names[count++] = name;
        }
    }
    return count;
}

static enum ml_status
unknown_key(const char *section, const char *name, struct ml_error_message *error) {
    const char *names[KEYS_MAX];
    const size_t count = names_of(section, names);
    const char *near = ml_suggest(name, names, count);
    char words[64];
    char near_words[64];
    ml_error_set(
        error,
        near != NULL ? "unknown key \"%s\"; did you mean \"%s\"?"
                     : "unknown key \"%s\"; \"%s\" is one that is known",
        words_of(section, name, words),
        words_of(section, near != NULL ? near : names[0], near_words)
    );
    return ML_ENV_MISSING;
}

static bool is_section(const char *name) {
    for (size_t i = 0; i < KEYS; i++) {
        if (keys[i].section[0] != '\0' && strcmp(keys[i].section, name) == 0) {
            return true;
        }
    }
    return false;
}

static enum ml_status apply_object(
    struct ml_trigger_rules *rules,
    const char *section,
    json_t *object,
    struct ml_error_message *error
) {
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        json_t *value = json_object_iter_value(at);
        const struct key *key = find(section, name);
        enum ml_status status = ML_OK;
        if (key != NULL) {
            status = apply(rules, key, value, error);
        } else if (section[0] == '\0' && is_section(name)) {
            if (!json_is_object(value)) {
                ml_error_set(error, "\"%.64s\": an object in { } is wanted", name);
                return ML_PEER_FORM;
            }
            status = apply_object(rules, name, value, error); /* sections do not nest */
        } else {
            status = unknown_key(section, name, error);
        }
        if (status != ML_OK) {
            return status;
        }
    }
    return ML_OK;
}

enum ml_status ml_trigger_rules_load(
    struct ml_trigger_rules *rules, const char *path, struct ml_error_message *error
) {
    json_error_t json_error;
    struct ml_trigger_rules read = *rules;
    struct ml_error_message why = {.text = ""};
    bool is_stream = false;
    FILE *file = ml_input_open(path, &is_stream);
    if (file == NULL) {
        ml_error_set(error, "%s: %s", path, ml_input_trouble(errno));
        return ML_ENV_SYSTEM;
    }
    json_t *root = json_loadf(file, JSON_REJECT_DUPLICATES, &json_error);
    (void)fclose(file);
    if (root == NULL) {
        ml_error_set(error, "%s:%d: %s", path, json_error.line, json_error.text);
        return ML_PEER_FORM;
    }
    enum ml_status status = ML_PEER_FORM;
    if (!json_is_object(root)) {
        ml_error_set(&why, "an object in { } is wanted");
    } else {
        status = apply_object(&read, "", root, &why);
    }
    json_decref(root);
    if (status == ML_OK && (read.service.most_dumps == 0) != (read.service.most_seconds == 0)) {
        ml_error_set(&why, "\"at_most\" wants both \"dumps\" and \"seconds\", or both \"off\"");
        status = ML_PEER_FORM;
    }
    if (status != ML_OK) {
        ml_error_set(error, "%s: %s", path, why.text);
        return status;
    }
    *rules = read;
    return ML_OK;
}

bool ml_trigger_rules_ask_footprint(const struct ml_trigger_rules *rules) {
    const struct ml_trigger_rules usual = ml_trigger_rules_default();
    for (size_t i = 0; i < KEYS; i++) {
        const size_t at = keys[i].offset;
        uint64_t asked = 0;
        uint64_t before = 0;
        if (strcmp(keys[i].section, "footprint") == 0 && strcmp(keys[i].name, "again") != 0) {
            memcpy(&asked, (const char *)rules + at, sizeof(asked));
            memcpy(&before, (const char *)&usual + at, sizeof(before));
            if (asked != 0 && asked != before) {
                return true;
            }
        }
    }
    return false;
}

bool ml_trigger_rules_watch_memory(const struct ml_trigger_rules *rules) {
    return rules->service.limit_percent != 0 || rules->service.to_limit_seconds != 0 ||
           rules->service.pressure_some_percent != 0 || rules->service.pressure_full_percent != 0 ||
           rules->service.pressure_events;
}
