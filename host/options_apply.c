/* What each option of `memlog run` does with its value. The table is at the end. */
#include "base/input_file.h"
#include "host/options_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "ipc/staging.h"

/* What --memlog-sampling alone means, as --help says: one page of memory. */
enum { SAMPLING_DEFAULT_BYTES = 4096 };

/* memlog.service.kMaxClients: no run has more processes. */
enum { KEEP_PROCESSES_MAX = 65536 };

enum { DUMP_INTERVAL_MAX_S = 365 * 24 * 3600, UNWIND_CHECK_MAX = 1 << 30 };

static enum ml_status
apply_mode(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    struct ml_complaint why = {.text = ""};
    enum ml_status status = ml_mode_parse(value, &options->mode, &why);
    if (status != ML_OK) {
        ml_complain(complaint, "--memlog: %s", why.text);
    }
    return status;
}

static enum ml_status
apply_stack_mode(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    static const char *const names[ML_STACK_MODE_COUNT] = {
        [ML_STACK_NATIVE] = "native",
        [ML_STACK_NATIVE_WITH_THREAD_NAMES] = "native-with-thread-names",
        [ML_STACK_PSEUDO] = "pseudo",
        [ML_STACK_MIXED] = "mixed",
    };
    int chosen =
        ml_value_choice("--memlog-stack-mode", value, names, ML_STACK_MODE_COUNT, complaint);
    if (chosen < 0) {
        return ML_ENV_MISSING;
    }
    if (chosen == ML_STACK_PSEUDO || chosen == ML_STACK_MIXED) {
        ml_complain(
            complaint,
            "--memlog-stack-mode=%s is not available in this version of memlog; "
            "native and native-with-thread-names are",
            value
        );
        return ML_ENV_MISSING;
    }
    options->stack_mode = (enum ml_stack_mode)chosen;
    return ML_OK;
}

static enum ml_status
apply_sampling(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)value;
    (void)complaint;
    if (!options->sampling_rate_given) {
        options->sampling_bytes = SAMPLING_DEFAULT_BYTES;
    }
    return ML_OK;
}

static enum ml_status
apply_sampling_rate(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    uint64_t bytes = 0;
    enum ml_status status = ml_size_read(value, &bytes) ? ML_OK : ML_PEER_FORM;
    if (status == ML_OK && (bytes == 0 || bytes > ML_SAMPLING_MAX_BYTES)) {
        status = ML_PEER_RANGE;
    }
    if (status != ML_OK) {
        ml_complain(
            complaint,
            "--memlog-sampling-rate=%s: a size in bytes is wanted, from 1 (every allocation) to "
            "4G, such as 4096 or 64K",
            value
        );
        return status;
    }
    options->sampling_bytes = bytes;
    options->sampling_rate_given = true;
    return ML_OK;
}

static enum ml_status
apply_keep(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)value;
    (void)complaint;
    options->keep_small_allocations = true;
    return ML_OK;
}

static enum ml_status
apply_role(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals[1] == '\0') {
        ml_complain(complaint, "--memlog-role=%s: ROLE=REGEX is wanted", value);
        return ML_PEER_FORM;
    }
    char *name = strndup(value, (size_t)(equals - value));
    if (name == NULL) {
        return ML_ENV_MEMORY;
    }
    struct ml_complaint why = {.text = ""};
    enum ml_role role = ML_ROLE_OTHER;
    enum ml_status status = ml_role_parse(name, &role, &why);
    free(name);
    if (status == ML_OK) {
        status = ml_patterns_add(options->roles, equals + 1, (int)role, &why);
    }
    if (status != ML_OK) {
        ml_complain(complaint, "--memlog-role=%s: %s", value, why.text);
    }
    return status;
}

static enum ml_status
apply_overrun(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    static const char *const names[] = {"block", "sample"};
    int chosen = ml_value_choice("--memlog-overrun", value, names, 2, complaint);
    if (chosen < 0) {
        return ML_ENV_MISSING;
    }
    options->overrun = (enum ml_overrun)chosen;
    return ML_OK;
}

static enum ml_status
apply_buffer(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    uint64_t bytes = 0;
    enum ml_status status = ml_size_read(value, &bytes) ? ML_OK : ML_PEER_FORM;
    uint64_t max_bytes = (uint64_t)ML_STAGING_SLOTS_MAX * ML_FRAME_MAX_BYTES;
    if (status == ML_OK && (bytes == 0 || bytes > max_bytes)) {
        status = ML_PEER_RANGE;
    }
    if (status != ML_OK) {
        ml_complain(
            complaint,
            "--memlog-buffer-bytes=%s: a size from 1 to %" PRIu64 " bytes a thread is wanted",
            value,
            max_bytes
        );
        return status;
    }
    options->staging_slots = (uint32_t)((bytes + ML_FRAME_MAX_BYTES - 1) / ML_FRAME_MAX_BYTES);
    return ML_OK;
}

static enum ml_status apply_keep_processes(
    struct ml_options *options, const char *value, struct ml_complaint *complaint
) {
    uint64_t count = 0;
    enum ml_status status = ml_count_read(value, KEEP_PROCESSES_MAX, &count) ? ML_OK : ML_PEER_FORM;
    if (status != ML_OK) {
        ml_complain(
            complaint,
            "--keep-processes=%s: a number from 0 to %d is wanted",
            value,
            KEEP_PROCESSES_MAX
        );
        return status;
    }
    options->keep_processes = (uint32_t)count;
    return ML_OK;
}

static enum ml_status apply_service_memory(
    struct ml_options *options, const char *value, struct ml_complaint *complaint
) {
    return ml_value_memory("--service-memory", value, &options->service_memory_bytes, complaint);
}

static enum ml_status
apply_client_memory(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    return ml_value_memory("--client-memory", value, &options->client_memory_bytes, complaint);
}

static const char *const sandbox_names[ML_SANDBOX_COUNT] = {
    [ML_SANDBOX_AUTO] = "auto",
    [ML_SANDBOX_STRICT] = "strict",
    [ML_SANDBOX_NONE] = "none",
};

const char *ml_sandbox_name(enum ml_sandbox sandbox) {
    return (unsigned)sandbox < ML_SANDBOX_COUNT ? sandbox_names[sandbox] : "?";
}

static enum ml_status
apply_sandbox(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    int chosen = ml_value_choice("--sandbox", value, sandbox_names, ML_SANDBOX_COUNT, complaint);
    if (chosen < 0) {
        return ML_ENV_MISSING;
    }
    options->sandbox = (enum ml_sandbox)chosen;
    return ML_OK;
}

static enum ml_status
apply_only(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    return ml_value_pattern(options->only, "--only", value, complaint);
}

static enum ml_status
apply_never(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    return ml_value_pattern(options->never, "--never", value, complaint);
}

static enum ml_status
apply_never_list(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    if (value[0] == '\0') {
        ml_complain(complaint, "--never-list: the name of a file is wanted");
        return ML_PEER_FORM;
    }
    options->never_list = value;
    return ML_OK;
}

static enum ml_status
apply_unwind_check(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    return ml_value_count(
        "--unwind-check", value, UNWIND_CHECK_MAX, &options->unwind_check, complaint
    );
}

static enum ml_status
apply_end_with_root(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)value;
    (void)complaint;
    options->end_with_root = true;
    return ML_OK;
}

static enum ml_status
apply_output(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    if (value[0] == '\0') {
        ml_complain(complaint, "--output: the name of a folder is wanted");
        return ML_PEER_FORM;
    }
    options->output = value;
    return ML_OK;
}

static enum ml_status
apply_no_page(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)value;
    (void)complaint;
    options->page = (struct ml_page_place){.kind = ML_PAGE_NONE};
    return ML_OK;
}

static enum ml_status
apply_page(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    return ml_page_place_parse(value, &options->page, complaint);
}

static enum ml_status
apply_page_remote(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)value;
    (void)complaint;
    options->page_remote = true;
    return ML_OK;
}

static enum ml_status
apply_dump_interval(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    return ml_value_count(
        "--dump-interval", value, DUMP_INTERVAL_MAX_S, &options->dump_interval_s, complaint
    );
}

static enum ml_status
apply_dump_at_peak(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    return ml_value_peak_step("--dump-at-peak", value, &options->peak_step, complaint);
}

static enum ml_status
apply_threshold(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    struct ml_complaint why = {.text = ""};
    const enum ml_status status = ml_trigger_rules_threshold(&options->triggers, value, &why);
    if (status != ML_OK) {
        ml_complain(complaint, "--threshold=%s", why.text);
    }
    return status;
}

static enum ml_status apply_trigger_interval(
    struct ml_options *options, const char *value, struct ml_complaint *complaint
) {
    return ml_value_count(
        "--trigger-interval",
        value,
        DUMP_INTERVAL_MAX_S,
        &options->triggers.interval_seconds,
        complaint
    );
}

static enum ml_status
apply_triggers(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    struct ml_complaint why = {.text = ""};
    const enum ml_status status = ml_trigger_rules_load(&options->triggers, value, &why);
    if (status != ML_OK) {
        ml_complain(complaint, "--triggers: %s", why.text);
    }
    return status;
}

static enum ml_status
apply_upload(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    struct ml_complaint why = {.text = ""};
    const enum ml_status status = ml_upload_target_parse(value, &options->upload.target, &why);
    if (status != ML_OK) {
        /* Not the value: it may hold a secret. */
        ml_complain(complaint, "--upload: %s", why.text);
        return status;
    }
    options->upload.url = value;
    return ML_OK;
}

static enum ml_status
apply_upload_max(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    enum ml_status status = ml_size_read(value, &options->upload.max_bytes) ? ML_OK : ML_PEER_FORM;
    if (status == ML_OK && options->upload.max_bytes == 0) {
        status = ML_PEER_RANGE;
    }
    if (status != ML_OK) {
        ml_complain(complaint, "--upload-max-bytes=%s: a size such as 10M is wanted", value);
    }
    return status;
}

static enum ml_status
apply_upload_names(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    static const char *const names[] = {"plain", "none", "all"};
    const int chosen = ml_value_choice("--upload-names", value, names, 3, complaint);
    if (chosen < 0) {
        return ML_ENV_MISSING;
    }
    options->upload.names = names[chosen];
    return ML_OK;
}

static enum ml_status
apply_upload_token(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)complaint;
    options->upload.token_file = value;
    return ML_OK;
}

static enum ml_status
apply_upload_ca(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    /* libcurl opens it by its name, again and again; one that comes later is none of its concern.
     */
    const int fd = ml_input_regular(value);
    if (fd < 0 && errno != ENOENT) {
        ml_complain(complaint, "--upload-ca=%s: %s", value, ml_input_trouble(errno));
        return ML_ENV_SYSTEM;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    options->upload.ca_file = value;
    return ML_OK;
}

static enum ml_status
apply_upload_wait(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    if (!ml_count_read(value, DUMP_INTERVAL_MAX_S, &options->upload.wait_s)) {
        ml_complain(complaint, "--upload-wait=%s: seconds are wanted, 0 for not at all", value);
        return ML_PEER_FORM;
    }
    return ML_OK;
}

static enum ml_status
apply_upload_spool(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)complaint;
    options->upload.spool = value;
    return ML_OK;
}

static enum ml_status
apply_dump_signal(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    int number = ml_signal_parse(value);
    if (number == 0) {
        ml_complain(complaint, "--dump-signal=%s: no such signal; USR2 is one", value);
        return ML_ENV_MISSING;
    }
    if (number == SIGKILL || number == SIGSTOP || number == SIGCHLD) {
        ml_complain(complaint, "--dump-signal=%s: memlog cannot take this signal", value);
        return ML_ENV_REFUSED;
    }
    options->dump_signal = number;
    return ML_OK;
}

static enum ml_status
apply_quiet(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)value;
    (void)complaint;
    options->quiet = true;
    return ML_OK;
}

static enum ml_status
apply_help(struct ml_options *options, const char *value, struct ml_complaint *complaint) {
    (void)value;
    (void)complaint;
    options->help = true;
    return ML_OK;
}

const struct ml_run_option ml_run_options[] = {
    {"--memlog", ML_VALUE_REQUIRED, apply_mode},
    {"--memlog-stack-mode", ML_VALUE_REQUIRED, apply_stack_mode},
    {"--memlog-sampling", ML_VALUE_NONE, apply_sampling},
    {"--memlog-sampling-rate", ML_VALUE_REQUIRED, apply_sampling_rate},
    {"--memlog-keep-small-allocations", ML_VALUE_NONE, apply_keep},
    {"--memlog-role", ML_VALUE_REQUIRED, apply_role},
    {"--memlog-overrun", ML_VALUE_REQUIRED, apply_overrun},
    {"--memlog-buffer-bytes", ML_VALUE_REQUIRED, apply_buffer},
    {"--service-memory", ML_VALUE_REQUIRED, apply_service_memory},
    {"--client-memory", ML_VALUE_REQUIRED, apply_client_memory},
    {"--keep-processes", ML_VALUE_REQUIRED, apply_keep_processes},
    {"--sandbox", ML_VALUE_REQUIRED, apply_sandbox},
    {"--only", ML_VALUE_REQUIRED, apply_only},
    {"--never", ML_VALUE_REQUIRED, apply_never},
    {"--never-list", ML_VALUE_REQUIRED, apply_never_list},
    {"--unwind-check", ML_VALUE_REQUIRED, apply_unwind_check},
    {"--end-with-root", ML_VALUE_NONE, apply_end_with_root},
    {"--output", ML_VALUE_REQUIRED, apply_output},
    {"-o", ML_VALUE_REQUIRED, apply_output},
    {"--no-page", ML_VALUE_NONE, apply_no_page},
    {"--page", ML_VALUE_OPTIONAL, apply_page},
    {"--page-remote", ML_VALUE_NONE, apply_page_remote},
    {"--dump-interval", ML_VALUE_REQUIRED, apply_dump_interval},
    {"--dump-signal", ML_VALUE_REQUIRED, apply_dump_signal},
    {"--dump-at-peak", ML_VALUE_OPTIONAL, apply_dump_at_peak},
    {"--threshold", ML_VALUE_REQUIRED, apply_threshold},
    {"--trigger-interval", ML_VALUE_REQUIRED, apply_trigger_interval},
    {"--triggers", ML_VALUE_REQUIRED, apply_triggers},
    {"--upload", ML_VALUE_REQUIRED, apply_upload},
    {"--upload-max-bytes", ML_VALUE_REQUIRED, apply_upload_max},
    {"--upload-names", ML_VALUE_REQUIRED, apply_upload_names},
    {"--upload-token-file", ML_VALUE_REQUIRED, apply_upload_token},
    {"--upload-ca", ML_VALUE_REQUIRED, apply_upload_ca},
    {"--upload-spool", ML_VALUE_REQUIRED, apply_upload_spool},
    {"--upload-wait", ML_VALUE_REQUIRED, apply_upload_wait},
    {"--quiet", ML_VALUE_NONE, apply_quiet},
    {"-q", ML_VALUE_NONE, apply_quiet},
    {"--help", ML_VALUE_NONE, apply_help},
    {"-h", ML_VALUE_NONE, apply_help},
    {NULL, ML_VALUE_NONE, NULL},
};
