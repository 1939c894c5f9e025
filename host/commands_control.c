/* `memlog start` and `memlog stop`. Room: host. Context: their own process. */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/complaint.h"
#include "base/size.h"
#include "host/commands.h"
#include "host/name_wishes.h"
#include "host/options.h"
#include "host/patterns.h"
#include "host/run.h"
#include "host/voice.h"
#include "ipc/channel.h"
#include "mojom_like_idl/heap_host_mojom.h"

/* The service takes part: it reads up to its now, and may just be replaced. */
enum { CONTROL_TIMEOUT_MS = 60000, PIDS_MAX = 1024, SETTINGS_MAX = 8 };

#define SAMPLING "--memlog-sampling"
#define SAMPLING_RATE "--memlog-sampling-rate"
#define STACK_MODE "--memlog-stack-mode"

struct arguments {
    bool json;
    const char *host;
    const char *name; /* whose processes; "": by pid alone */
    uint32_t pids[PIDS_MAX];
    uint32_t pids_count;
    char *settings[SETTINGS_MAX + 2]; /* words of `memlog run`, and room for a program */
    size_t settings_count;
};

static bool is_setting(const char *word) {
    return strncmp(word, SAMPLING, strlen(SAMPLING)) == 0 ||
           strncmp(word, STACK_MODE, strlen(STACK_MODE)) == 0;
}

static bool unknown_option(const char *word, bool is_start) {
    const char *const known[] = {"--host", "--json", "--name", SAMPLING_RATE, STACK_MODE};
    return ml_commands_unknown(word, known, is_start ? 5 : 3);
}

/* Whether the running memlog could understand it; else that is said here. */
static bool is_name(const char *regex) {
    struct ml_complaint complaint = {.text = ""};
    struct ml_patterns *patterns = ml_patterns_new();
    bool fine = patterns != NULL && regex[0] != '\0' && strlen(regex) <= ML_NAME_WISH_BYTES;
    if (!fine) {
        ml_complain(&complaint, "1 to %d bytes are wanted", ML_NAME_WISH_BYTES);
    }
    fine = fine && ml_patterns_add(patterns, regex, 0, &complaint) == ML_OK;
    if (!fine) {
        ml_say_error("--name: %s", complaint.text);
    }
    ml_patterns_free(patterns);
    return fine;
}

/* False and a word on stderr: wrong usage. */
static bool parse(char *const *words, bool is_start, struct arguments *out_arguments) {
    *out_arguments = (struct arguments){.name = ""};
    for (size_t i = 0; words[i] != NULL; i++) {
        uint64_t pid = 0;
        if (strcmp(words[i], "--json") == 0) {
            out_arguments->json = true;
        } else if (strncmp(words[i], "--host=", 7) == 0) {
            out_arguments->host = words[i] + 7;
        } else if (strncmp(words[i], "--name=", 7) == 0) {
            out_arguments->name = words[i] + 7;
            if (!is_name(out_arguments->name)) {
                return false;
            }
        } else if (is_start && is_setting(words[i]) && out_arguments->settings_count < SETTINGS_MAX) {
            out_arguments->settings[out_arguments->settings_count++] = words[i];
        } else if (words[i][0] == '-') {
            return unknown_option(words[i], is_start);
        } else if (!ml_count_read(words[i], INT_MAX, &pid) || pid == 0) {
            ml_say_error("'%s' is not a process id", words[i]);
            return false;
        } else if (out_arguments->pids_count < PIDS_MAX) {
            out_arguments->pids[out_arguments->pids_count++] = (uint32_t)pid;
        } else {
            ml_say_error("more than %d processes", PIDS_MAX);
            return false;
        }
    }
    if (out_arguments->pids_count == 0 && out_arguments->name[0] == '\0') {
        ml_say_error("which process? 'memlog ps' lists them");
        return false;
    }
    return true;
}

/* The settings, as `memlog run` understands them; sampling_bytes 0: none were given. */
static bool parse_settings(
    struct arguments *arguments, uint64_t *out_sampling_bytes, uint32_t *out_stack_mode
) {
    static char program[] = "program";
    struct ml_complaint complaint = {.text = ""};
    struct ml_options options;
    *out_sampling_bytes = 0;
    *out_stack_mode = 0;
    if (arguments->settings_count == 0) {
        return true;
    }
    arguments->settings[arguments->settings_count] = program;
    if (ml_options_init(&options) != ML_OK) {
        ml_say_error("no memory");
        return false;
    }
    const enum ml_status status = ml_options_parse(&options, arguments->settings, &complaint);
    if (status == ML_OK) {
        *out_sampling_bytes = options.sampling_bytes;
        *out_stack_mode = (uint32_t)options.stack_mode;
    } else {
        ml_say_error("%s", complaint.text);
    }
    ml_options_fini(&options);
    return status == ML_OK;
}

/* Say what came of it; the exit code. */
static int
tell(const struct memlog_host_outcome *outcomes, uint32_t count, bool json, const char *what) {
    bool all = true;
    (void)printf("%s", json ? "{\"memlog\": 1, \"processes\": [" : "");
    for (uint32_t i = 0; i < count; i++) {
        const struct memlog_host_outcome *one = &outcomes[i];
        all = all && one->done;
        if (json) {
            (void)printf(
                "%s\n  {\"pid\": %" PRIu32 ", \"done\": %s, \"trouble\": ",
                i > 0 ? "," : "",
                one->pid,
                one->done ? "true" : "false"
            );
            ml_commands_json_text(one->trouble.data, one->trouble.count_bytes);
            (void)printf("}");
        } else if (one->done) {
            (void)printf("%" PRIu32 " %s\n", one->pid, what);
        } else {
            ml_say_error(
                "%" PRIu32 " is not %s: %.*s",
                one->pid,
                what,
                (int)one->trouble.count_bytes,
                one->trouble.data
            );
        }
    }
    (void)printf("%s", json ? "\n]}\n" : "");
    return all ? 0 : ML_EXIT_FAILED;
}

int ml_command_start(char *const *words) {
    struct arguments arguments;
    uint64_t sampling_bytes = 0;
    uint32_t stack_mode = 0;
    if (!parse(words, true, &arguments) ||
        !parse_settings(&arguments, &sampling_bytes, &stack_mode)) {
        return ML_EXIT_USAGE;
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_start_request request = {
        .version = MEMLOG_HOST_HOST_VERSION,
        .pids = {.items = arguments.pids, .count = arguments.pids_count},
        .sampling_bytes = sampling_bytes,
        .stack_mode = stack_mode,
        .name = ml_string_of(arguments.name),
    };
    struct memlog_host_start_reply reply;
    const enum ml_status status =
        memlog_host_start_wait(ml_channel_port(channel), &request, CONTROL_TIMEOUT_MS, &reply);
    int exit_code = ML_EXIT_FAILED;
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else {
        exit_code = tell(reply.outcomes.items, reply.outcomes.count, arguments.json, "started");
        if (reply.outcomes.count == 0) {
            ml_say_error("nobody of that name runs unrecorded; whoever comes is recorded");
        }
    }
    ml_channel_free(channel);
    return exit_code;
}

int ml_command_stop(char *const *words) {
    struct arguments arguments;
    if (!parse(words, false, &arguments)) {
        return ML_EXIT_USAGE;
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_stop_request request = {
        .version = MEMLOG_HOST_HOST_VERSION,
        .pids = {.items = arguments.pids, .count = arguments.pids_count},
        .name = ml_string_of(arguments.name),
    };
    struct memlog_host_stop_reply reply;
    const enum ml_status status =
        memlog_host_stop_wait(ml_channel_port(channel), &request, CONTROL_TIMEOUT_MS, &reply);
    int exit_code = ML_EXIT_FAILED;
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else {
        exit_code = tell(reply.outcomes.items, reply.outcomes.count, arguments.json, "stopped");
        if (reply.outcomes.count == 0) {
            ml_say_error("nobody of that name is recorded");
        }
    }
    ml_channel_free(channel);
    return exit_code;
}

int ml_command_rate(char *const *words) {
    struct arguments arguments;
    uint64_t sampling_bytes = 0;
    uint32_t stack_mode = 0;
    if (!parse(words, true, &arguments)) {
        return ML_EXIT_USAGE;
    }
    if (arguments.name[0] != '\0') {
        ml_say_error("rate takes process ids, no --name");
        return ML_EXIT_USAGE;
    }
    bool given = arguments.settings_count > 0;
    for (size_t i = 0; i < arguments.settings_count; i++) {
        given = given && strncmp(arguments.settings[i], SAMPLING, strlen(SAMPLING)) == 0;
    }
    if (!given) {
        ml_say_error("rate takes the new rate alone: --memlog-sampling-rate=BYTES");
        return ML_EXIT_USAGE;
    }
    if (!parse_settings(&arguments, &sampling_bytes, &stack_mode)) {
        return ML_EXIT_USAGE;
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_rate_request request = {
        .version = MEMLOG_HOST_HOST_VERSION,
        .pids = {.items = arguments.pids, .count = arguments.pids_count},
        .sampling_bytes = sampling_bytes,
    };
    struct memlog_host_rate_reply reply;
    const enum ml_status status =
        memlog_host_rate_wait(ml_channel_port(channel), &request, CONTROL_TIMEOUT_MS, &reply);
    int exit_code = ML_EXIT_FAILED;
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else {
        exit_code = tell(reply.outcomes.items, reply.outcomes.count, arguments.json, "changed");
    }
    ml_channel_free(channel);
    return exit_code;
}
