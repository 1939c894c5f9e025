#include "host/policy/options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/upload.h"
#include "ipc/wire/staging.h"

enum {
    /* With --memlog-overrun=sample the interval doubles a dozen times when the service stalls.
     * Staging holds the chunks of that time, so that no thread waits (client/stream/overrun.h). */
    SAMPLE_SLOTS = 16,
    /* The interval of --memlog-sampling without a rate: one page of memory. */
    SAMPLING_DEFAULT_BYTES = 4096
};

/* Chromium waits this long for a report. */
enum { UPLOAD_WAIT_S = 10 };

enum ml_status ml_options_init(struct ml_options *out_options) {
    *out_options = (struct ml_options){
        .mode = ML_MODE_ALL,
        .stack_mode = ML_STACK_NATIVE,
        .staging_slots = ML_STAGING_SLOTS_DEFAULT,
        .keep_processes = ML_KEEP_PROCESSES_DEFAULT,
        .whole_interval_ms = ML_WHOLE_INTERVAL_MS,
        .triggers = ml_trigger_rules_default(),
        .page = ml_page_place_default(),
        .upload = {.max_bytes = ML_UPLOAD_MOST_BYTES, .wait_s = UPLOAD_WAIT_S},
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

uint64_t ml_sampling_bytes(bool sampling, uint64_t rate_bytes) {
    return rate_bytes != 0 ? rate_bytes : sampling ? SAMPLING_DEFAULT_BYTES : 1;
}

static enum ml_status parse(
    const struct ml_option_table *table,
    struct ml_options *options,
    char *const *arguments,
    struct ml_error_message *error
) {
    const enum ml_option_outcome outcome =
        ml_option_table_read(table, arguments, options, NULL, error);
    options->help = outcome == ML_OPTIONS_HELP;
    if (options->help) {
        return ML_OK;
    }
    if (outcome == ML_OPTIONS_WRONG) {
        return ML_PEER_FORM;
    }
    if (!ml_page_place_allowed(&options->page, options->page_remote, error)) {
        return ML_ENV_REFUSED;
    }
    if (options->upload.prune > 0 && options->keep_small_allocations) {
        ml_error_set(
            error, "--upload-prune and --memlog-keep-small-allocations exclude each other"
        );
        return ML_PEER_FORM;
    }
    if (options->types != ML_TYPES_NONE && options->whole == ML_WHOLE_OFF) {
        ml_error_set(
            error,
            "--types=%s is read with the memory: no --whole=off with it",
            ml_types_names[options->types]
        );
        return ML_PEER_FORM;
    }
    if (options->budget != NULL && options->mode == ML_MODE_NONE) {
        ml_error_set(error, "--budget judges the final dump: --memlog=none takes none");
        return ML_PEER_FORM;
    }
    if (options->budget_base != NULL && options->budget == NULL) {
        ml_error_set(error, "--budget-base goes with --budget=FILE");
        return ML_PEER_FORM;
    }
    if (options->budget_suppressions != NULL && options->budget == NULL) {
        ml_error_set(error, "--budget-suppressions goes with --budget=FILE");
        return ML_PEER_FORM;
    }
    if (options->overhead.promised_ppm != 0 && options->sampling_bytes == 1) {
        ml_error_set(
            error,
            "--overhead is kept by sampling, and --memlog-sampling-rate=1 records every "
            "allocation: leave one of them out"
        );
        return ML_PEER_FORM;
    }
    if (options->overhead.promised_ppm != 0) {
        options->overhead.least_bytes = ml_sampling_bytes(true, options->sampling_bytes);
        options->sampling_bytes = ml_overhead_start(&options->overhead);
    }
    options->sampling_bytes = ml_sampling_bytes(options->sampling, options->sampling_bytes);
    if (options->buffer_bytes != 0) {
        options->staging_slots =
            (uint32_t)((options->buffer_bytes + ML_FRAME_MAX_BYTES - 1) / ML_FRAME_MAX_BYTES);
    } else if (options->overrun == ML_OVERRUN_SAMPLE) {
        options->staging_slots = SAMPLE_SLOTS;
    }
    return ML_OK;
}

enum ml_status ml_options_parse(
    struct ml_options *options, char *const *arguments, struct ml_error_message *error
) {
    return parse(&ml_run_table, options, arguments, error);
}

enum ml_status ml_options_parse_attach(
    struct ml_options *options, char *const *arguments, struct ml_error_message *error
) {
    for (size_t i = 0; arguments[i] != NULL && strcmp(arguments[i], "--") != 0; i++) {
        const char *name = ml_options_of_run_alone(arguments[i]);
        if (name != NULL) {
            ml_error_set(
                error,
                "%s is an option of 'memlog run'; memlog attach records the processes that you "
                "name, and the children that they fork",
                name
            );
            return ML_PEER_FORM;
        }
    }
    const enum ml_status status = parse(&ml_attach_table, options, arguments, error);
    if (status == ML_OK && !options->help && options->pids.count == 0 && options->name == NULL) {
        ml_error_set(error, "which process? Name its PID, or --name=REGEX");
        return ML_PEER_FORM;
    }
    return status;
}

/* The host sets MEMLOG_SOCKET for the programs it starts, so a memlog below memlog sees it. The
 * others belong to memlog-analyzer (tools/analyzer/symbols/search.h,
 * tools/analyzer/helpers/cache_keeper.h). */
const char *const ml_environment_keys[ML_ENVIRONMENT_KEYS] = {
    "MEMLOG_SOCKET",
    "MEMLOG_BINARY_PATH",
    "MEMLOG_SYMBOLIZER_MODE",
    "MEMLOG_SYMBOL_CACHE",
    "MEMLOG_PROGUARD_MAP",
    "MEMLOG_PAGER"};

static bool is_known_key(const char *key, size_t key_count) {
    for (size_t i = 0; i < ML_ENVIRONMENT_KEYS; i++) {
        if (strlen(ml_environment_keys[i]) == key_count &&
            strncmp(key, ml_environment_keys[i], key_count) == 0) {
            return true;
        }
    }
    return false;
}

enum ml_status
ml_options_check_environment(char *const *environment, struct ml_error_message *error) {
    static const char prefix[] = "MEMLOG_";
    for (size_t i = 0; environment[i] != NULL; i++) {
        const char *entry = environment[i];
        const size_t key_count = strcspn(entry, "=");
        if (strncmp(entry, prefix, sizeof(prefix) - 1) != 0 || is_known_key(entry, key_count)) {
            continue;
        }
        char key[ML_SUGGEST_WORD_MAX + 1];
        (void)snprintf(key, sizeof(key), "%.*s", (int)key_count, entry);
        const char *near = ml_suggest(key, ml_environment_keys, ML_ENVIRONMENT_KEYS);
        ml_error_set(
            error,
            "unknown environment key '%s'; %s%s",
            key,
            near != NULL
                ? "did you mean "
                : "memlog has MEMLOG_BINARY_PATH, MEMLOG_SYMBOLIZER_MODE, MEMLOG_PROGUARD_MAP, "
                  "MEMLOG_PAGER and ",
            near != NULL ? near : "MEMLOG_SYMBOL_CACHE"
        );
        return ML_ENV_MISSING;
    }
    return ML_OK;
}
