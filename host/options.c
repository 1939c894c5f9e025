#include "host/options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "host/options_internal.h"
#include "ipc/staging.h"

enum {
    /* More than the table has: options are few. */
    OPTIONS_MAX = 64,
    /* With --memlog-overrun=sample: what comes while the interval grows twelve times is not waited
     * for (client/overrun.h). */
    SAMPLE_SLOTS = 16
};

/* Chromium's bound for a report. */
enum { UPLOAD_MAX_BYTES = 10000000, UPLOAD_WAIT_S = 10 };

enum ml_status ml_options_init(struct ml_options *out_options) {
    *out_options = (struct ml_options){
        .mode = ML_MODE_ALL,
        .stack_mode = ML_STACK_NATIVE,
        .sampling_bytes = 1,
        .staging_slots = ML_STAGING_SLOTS_DEFAULT,
        .keep_processes = ML_KEEP_PROCESSES_DEFAULT,
        .triggers = ml_trigger_rules_default(),
        .page = ml_page_place_default(),
        .upload = {.max_bytes = UPLOAD_MAX_BYTES, .wait_s = UPLOAD_WAIT_S},
        .roles = ml_patterns_new(),
        .only = ml_patterns_new(),
        .never = ml_patterns_new(),
    };
    if (out_options->roles == NULL || out_options->only == NULL || out_options->never == NULL) {
        ml_options_fini(out_options);
        return ML_ENV_MEMORY;
    }
    return ML_OK;
}

void ml_options_fini(struct ml_options *options) {
    ml_patterns_free(options->roles);
    ml_patterns_free(options->only);
    ml_patterns_free(options->never);
    options->roles = NULL;
    options->only = NULL;
    options->never = NULL;
}

static const struct ml_run_option *find_option(const char *name, size_t name_count) {
    for (const struct ml_run_option *option = ml_run_options; option->name != NULL; option++) {
        if (strlen(option->name) == name_count && strncmp(option->name, name, name_count) == 0) {
            return option;
        }
    }
    return NULL;
}

static enum ml_status
unknown_option(const char *argument, size_t name_count, struct ml_complaint *complaint) {
    const char *names[OPTIONS_MAX];
    size_t names_count = 0;
    while (names_count < OPTIONS_MAX && ml_run_options[names_count].name != NULL) {
        names[names_count] = ml_run_options[names_count].name;
        names_count++;
    }
    char *name = strndup(argument, name_count);
    if (name == NULL) {
        return ML_ENV_MEMORY;
    }
    const char *near = ml_suggest(name, names, names_count);
    if (near != NULL) {
        ml_complain(complaint, "unknown option '%s'; did you mean '%s'?", name, near);
    } else {
        ml_complain(complaint, "unknown option '%s'; 'memlog run --help' lists them", name);
    }
    free(name);
    return ML_ENV_MISSING;
}

/* One option at arguments[*index]; moves *index behind it and its value. */
static enum ml_status parse_option(
    struct ml_options *options,
    char *const *arguments,
    size_t *index,
    struct ml_complaint *complaint
) {
    const char *argument = arguments[*index];
    size_t name_count = strcspn(argument, "=");
    const char *value = argument[name_count] == '=' ? argument + name_count + 1 : NULL;
    const struct ml_run_option *option = find_option(argument, name_count);
    if (option == NULL) {
        return unknown_option(argument, name_count, complaint);
    }
    if (option->apply == NULL) {
        ml_complain(complaint, "%s is not available in this version of memlog", option->name);
        return ML_ENV_MISSING;
    }
    if (option->value == ML_VALUE_NONE && value != NULL) {
        ml_complain(complaint, "%s takes no value", option->name);
        return ML_PEER_FORM;
    }
    (*index)++;
    if (option->value == ML_VALUE_REQUIRED && value == NULL) {
        value = arguments[*index];
        if (value == NULL || strcmp(value, "--") == 0) {
            ml_complain(complaint, "%s needs a value", option->name);
            return ML_PEER_SHORT;
        }
        (*index)++;
    }
    return option->apply(options, value, complaint);
}

enum ml_status ml_options_parse(
    struct ml_options *options, char *const *arguments, struct ml_complaint *complaint
) {
    size_t index = 0;
    while (arguments[index] != NULL && arguments[index][0] == '-' && arguments[index][1] != '\0') {
        if (strcmp(arguments[index], "--") == 0) {
            index++;
            break;
        }
        enum ml_status status = parse_option(options, arguments, &index, complaint);
        if (status != ML_OK || options->help) {
            return status;
        }
    }
    if (arguments[index] == NULL || arguments[index][0] == '\0') {
        ml_complain(complaint, "no program given: memlog run [OPTIONS] -- PROGRAM [ARGS...]");
        return ML_PEER_SHORT;
    }
    if (!options->page_remote && !ml_page_place_is_local(&options->page)) {
        ml_complain(
            complaint,
            "--page=%s: others than this machine could reach the page there, and its token would "
            "travel in the clear; --page-remote says that this is wanted",
            options->page.address
        );
        return ML_ENV_REFUSED;
    }
    options->program = arguments + index;
    if (options->overrun == ML_OVERRUN_SAMPLE &&
        options->staging_slots == ML_STAGING_SLOTS_DEFAULT) {
        options->staging_slots = SAMPLE_SLOTS;
    }
    return ML_OK;
}

/* MEMLOG_SOCKET is ours: set for the programs we start, and met again when memlog starts memlog.
 * The others are memlog-analyzer's (tools/symbol_search.h, tools/cache_keeper.h). */
static const char *const environment_keys[] = {
    "MEMLOG_SOCKET",
    "MEMLOG_BINARY_PATH",
    "MEMLOG_SYMBOLIZER_MODE",
    "MEMLOG_SYMBOL_CACHE",
    "MEMLOG_PROGUARD_MAP"};
enum { ENVIRONMENT_KEYS = sizeof(environment_keys) / sizeof(environment_keys[0]) };

static bool is_known_key(const char *key, size_t key_count) {
    for (size_t i = 0; i < ENVIRONMENT_KEYS; i++) {
        if (strlen(environment_keys[i]) == key_count &&
            strncmp(key, environment_keys[i], key_count) == 0) {
            return true;
        }
    }
    return false;
}

enum ml_status
ml_options_check_environment(char *const *environment, struct ml_complaint *complaint) {
    static const char prefix[] = "MEMLOG_";
    for (size_t i = 0; environment[i] != NULL; i++) {
        const char *entry = environment[i];
        const size_t key_count = strcspn(entry, "=");
        if (strncmp(entry, prefix, sizeof(prefix) - 1) != 0 || is_known_key(entry, key_count)) {
            continue;
        }
        char key[ML_SUGGEST_WORD_MAX + 1];
        (void)snprintf(key, sizeof(key), "%.*s", (int)key_count, entry);
        const char *near = ml_suggest(key, environment_keys, ENVIRONMENT_KEYS);
        ml_complain(
            complaint,
            "unknown environment key '%s'; %s%s",
            key,
            near != NULL
                ? "did you mean "
                : "memlog has MEMLOG_BINARY_PATH, MEMLOG_SYMBOLIZER_MODE, MEMLOG_PROGUARD_MAP and ",
            near != NULL ? near : "MEMLOG_SYMBOL_CACHE"
        );
        return ML_ENV_MISSING;
    }
    return ML_OK;
}
