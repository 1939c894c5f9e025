/* `memlog start`, `stop` and `rate`. Room: host. Context: their own process. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error_message.h"
#include "host/cli/commands.h"
#include "host/cli/run.h"
#include "host/policy/name_rules.h"
#include "host/policy/options.h"
#include "host/policy/patterns.h"
#include "host/process/log.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* The service first reads all events up to now, and it may be restarting. A process outside of the
 * run is attached to, and tracers take turns. */
enum { CONTROL_TIMEOUT_MS = 180000 };

struct arguments {
    bool json;
    const char *host;
    const char *name; /* expression over names and command lines; "": pids alone */
    bool sampling;
    uint64_t sampling_bytes; /* 0: the run's interval */
    enum ml_stack_mode stack_mode;
    struct ml_pids pids;
};

/* Check the expression by the rules of the running memlog, before it is sent. */
static bool read_name(void *to, const char *value, struct ml_error_message *why) {
    struct ml_patterns *patterns = ml_patterns_new();
    bool fine = patterns != NULL && value[0] != '\0' && strlen(value) <= ML_NAME_RULE_BYTES;
    if (!fine) {
        ml_error_set(why, "1 to %d bytes are wanted", ML_NAME_RULE_BYTES);
    }
    fine = fine && ml_patterns_add(patterns, value, 0, why) == ML_OK;
    ml_patterns_free(patterns);
    ((struct arguments *)to)->name = value;
    return fine;
}

#define ROW_NAME(text)                                                                             \
    { .name = "--name", ML_READ_BY(read_name), .value = "REGEX", .help = (text) }
#define WHICH "which process? 'memlog ps' lists them"

static const struct ml_option start_options[] = {
    ROW_NAME(
        "everything whose name or command line matches, what runs now and what starts later, "
        "until 'memlog stop' with the same --name; where no process of the run has the name, your "
        "other processes that have it now"
    ),
    ML_ROW_SAMPLING(struct arguments, sampling),
    ML_ROW_SAMPLING_RATE(struct arguments, sampling_bytes),
    ML_ROW_STACK_MODE(struct arguments, stack_mode),
    ML_ROW_JSON(struct arguments, json),
    ML_ROW_HOST(struct arguments, host),
};

const struct ml_option_table ml_start_table = {
    .program = "memlog",
    .name = "start",
    .summary = "start recording a process",
    .usage = "[OPTIONS] [PID...]",
    .about =
        "Records processes of a running memlog from now on, each in a new, empty profile. "
        "What was recorded of them before is dropped. With --memlog=manual nothing is "
        "recorded until then. A process that was not started under memlog is attached to: what it "
        "had allocated before is not known.",
    ML_OPTIONS(start_options),
    ML_OPERANDS_PROCESSES(struct arguments, pids),
    .example = "memlog start --name='--type=renderer'",
};

static const struct ml_option stop_options[] = {
    ROW_NAME("what was started with the same --name"),
    ML_ROW_JSON(struct arguments, json),
    ML_ROW_HOST(struct arguments, host),
};

const struct ml_option_table ml_stop_table = {
    .program = "memlog",
    .name = "stop",
    .summary = "stop recording a process",
    .usage = "[OPTIONS] [PID...]",
    .about = "Records processes of a running memlog no more. Their profiles stay as they are at "
             "this moment, in every dump, until they are started again. A process that memlog was "
             "attached to is left as it was.",
    ML_OPTIONS(stop_options),
    ML_OPERANDS_PROCESSES(struct arguments, pids),
    .example = "memlog stop 4711",
};

static const struct ml_option rate_options[] = {
    ML_ROW_SAMPLING(struct arguments, sampling),
    ML_ROW_SAMPLING_RATE(struct arguments, sampling_bytes),
    ML_ROW_JSON(struct arguments, json),
    ML_ROW_HOST(struct arguments, host),
};

const struct ml_option_table ml_rate_table = {
    .program = "memlog",
    .name = "rate",
    .summary = "record a process at another sampling rate",
    .usage = "--memlog-sampling-rate=BYTES [OPTIONS] PID...",
    .about = "Records processes of a running memlog at another sampling rate from now on: one "
             "allocation in so many bytes on average, or all with 1. Their profiles go on, and "
             "what was recorded counts as it was: figures stay unbiased over every change, and say "
             "how exact they are.",
    ML_OPTIONS(rate_options),
    ML_OPERANDS_PROCESSES(struct arguments, pids),
    .example = "memlog rate --memlog-sampling-rate=512K 4711",
};

/* Read the arguments. Sampling settings mean what they mean to `memlog run`; without any, those of
 * the run apply. False: *out_exit is the exit code. */
static bool parse(
    const struct ml_option_table *table, char *const *words, struct arguments *out, int *out_exit
) {
    uint64_t given = 0;
    *out = (struct arguments){.name = ""};
    if (!ml_commands_read(table, words, out, &given, out_exit)) {
        return false;
    }
    if (out->pids.count == 0 && out->name[0] == '\0') {
        *out_exit = ml_commands_wrong(table, WHICH);
        return false;
    }
    const bool has_mode =
        table == &ml_start_table && ml_option_given(table, given, "--memlog-stack-mode");
    if (has_mode || out->sampling || out->sampling_bytes != 0) {
        out->sampling_bytes = ml_sampling_bytes(out->sampling, out->sampling_bytes);
    }
    return true;
}

/* Print the outcome for each process. Returns the exit code. */
static int
tell(const struct memlog_host_outcome *outcomes, uint32_t count, bool json, const char *what) {
    bool all = true;
    struct ml_json out = ml_json_over(stdout);
    if (json) {
        ml_json_open(&out, '{');
        ml_json_number_member(&out, "memlog", 1);
        ml_json_open_member(&out, "processes", '[');
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct memlog_host_outcome *one = &outcomes[i];
        all = all && one->done;
        if (json) {
            ml_json_line(&out);
            ml_json_open(&out, '{');
            ml_json_number_member(&out, "pid", one->pid);
            ml_json_bool_member(&out, "done", one->done);
            ml_commands_json_member(&out, "trouble", one->trouble);
            ml_json_close(&out, '}');
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
    if (json) {
        ml_json_close(&out, ']');
        ml_json_close(&out, '}');
        (void)putchar('\n');
    }
    return all ? 0 : ML_EXIT_FAILED;
}

/* Send a request and print its outcomes. `done` describes a process for which it worked; `nobody`
 * is the message when no process matches. */
static int control(
    const struct ml_option_table *table,
    char *const *words,
    enum memlog_host_control_kind kind,
    const char *done,
    const char *nobody
) {
    struct arguments arguments;
    int exit_code = 0;
    if (!parse(table, words, &arguments, &exit_code)) {
        return exit_code;
    }
    if (kind == MEMLOG_HOST_CONTROL_KIND_RATE && arguments.sampling_bytes == 0) {
        return ml_commands_wrong(table, "rate takes the new rate: --memlog-sampling-rate=BYTES");
    }
    struct ml_channel *channel = ml_commands_reach_host(arguments.host);
    if (channel == NULL) {
        return ML_EXIT_FAILED;
    }
    const struct memlog_host_control_request request = {
        .version = MEMLOG_HOST_HOST_VERSION,
        .kind = kind,
        .pids = {.items = arguments.pids.items, .count = arguments.pids.count},
        .sampling_bytes = arguments.sampling_bytes,
        .stack_mode = (uint32_t)arguments.stack_mode,
        .name = ml_string_of(arguments.name),
    };
    struct memlog_host_control_reply reply;
    const enum ml_status status =
        memlog_host_control_wait(ml_channel_port(channel), &request, CONTROL_TIMEOUT_MS, &reply);
    exit_code = ML_EXIT_FAILED;
    if (status != ML_OK) {
        ml_say_error("the running memlog does not answer: %s", ml_status_text(status));
    } else {
        exit_code = tell(reply.outcomes.items, reply.outcomes.count, arguments.json, done);
        if (reply.outcomes.count == 0) {
            ml_say_error("%s", nobody);
        }
    }
    ml_channel_free(channel);
    return exit_code;
}

int ml_command_start(char *const *words) {
    return control(
        &ml_start_table,
        words,
        MEMLOG_HOST_CONTROL_KIND_START,
        "started",
        "no unrecorded process of that name runs; those that start from now on are recorded"
    );
}

int ml_command_stop(char *const *words) {
    return control(
        &ml_stop_table,
        words,
        MEMLOG_HOST_CONTROL_KIND_STOP,
        "stopped",
        "no process of that name is recorded"
    );
}

int ml_command_rate(char *const *words) {
    return control(
        &ml_rate_table,
        words,
        MEMLOG_HOST_CONTROL_KIND_RATE,
        "changed",
        "no process is recorded: 'memlog start' starts recording"
    );
}
