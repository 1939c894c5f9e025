/* `memlog doctor`: find out why nothing is recorded. Room: host. Context: its own process. */
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/size.h"
#include "host/cli/attempt.h"
#include "host/cli/commands.h"
#include "host/cli/doctor_internal.h"
#include "host/policy/options.h"
#include "host/policy/trigger_rules.h"
#include "host/process/cgroup_info.h"
#include "host/process/image.h"
#include "host/process/never_list.h"
#include "host/process/paths.h"
#include "host/process/probe.h"

/* The path of a program, found as execvp finds it; "" if there is none. */
static void find_program(const char *name, char out_path[PATH_MAX]) {
    char candidate[PATH_MAX];
    const char *at = strchr(name, '/') != NULL ? NULL : getenv("PATH");
    out_path[0] = '\0';
    if (at == NULL) {
        if (realpath(name, out_path) == NULL) {
            out_path[0] = '\0';
        }
        return;
    }
    while (*at != '\0') {
        const size_t count = strcspn(at, ":");
        (void)snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)count, at, name);
        if (access(candidate, X_OK) == 0 && realpath(candidate, out_path) != NULL) {
            return;
        }
        at += count + (at[count] == ':');
    }
    out_path[0] = '\0';
}

/* ---- a program */

/* What memlog sees of programs whose own allocators serve most of their memory. */
static void hint_at_own_memory(struct ml_findings *findings, const char *name) {
    static const struct {
        const char *beginning, *hint;
    } known[] = {
        {"python", "small objects come from arenas of its own; PYTHONMALLOC=malloc shows them all"},
        {"node", "memlog sees its C++ side; JavaScript objects live in V8's own heap"},
        {"java", "memlog sees the JVM's C heap; Java objects live in its own"},
        {"ruby", "objects live in its own heap pages; their contents are malloc's"},
        {"chrom", "memlog sees its C++ side; JavaScript objects live in V8's own heap"},
        {"firefox", "memlog sees its C++ side; JavaScript objects live in a heap of their own"},
        {"go", "Go programs have a heap of their own, which is not malloc's"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(name, known[i].beginning, strlen(known[i].beginning)) == 0) {
            ml_doctor_find(findings, ML_DOCTOR_NOTE, "program", "%s: %s", name, known[i].hint);
            return;
        }
    }
}

static void runs_unprofiled(struct ml_findings *findings, const char *name, const char *why) {
    ml_doctor_find(findings, ML_DOCTOR_FAIL, "program", "%s: %s; it runs unprofiled", name, why);
}

/* The program's image can be preloaded. Try whether memlog is loaded into it; true: it is. */
static bool try_program(struct ml_findings *findings, char *const *argv) {
    struct ml_error_message error = {.text = ""};
    char library[PATH_MAX];
    const char *why = "";
    const enum ml_attempt result = ml_paths_find(ML_PRELOAD_FILE, library, &error) == ML_OK
                                       ? ml_attempt_program(argv, library, &why)
                                       : ML_ATTEMPT_UNKNOWN;
    switch (result) {
    case ML_ATTEMPT_REACHED:
        ml_doctor_find(findings, ML_DOCTOR_OK, "program", "%s can be profiled", argv[0]);
        hint_at_own_memory(findings, basename(argv[0]));
        return true;
    case ML_ATTEMPT_UNKNOWN:
        ml_doctor_find(
            findings,
            ML_DOCTOR_NOTE,
            "program",
            "%s is of a kind that can be profiled, but could not be tried",
            argv[0]
        );
        return false;
    case ML_ATTEMPT_NOT_LOADED:
        why = "its loader did not load memlog";
        break;
    case ML_ATTEMPT_ENDED:
        why = "it ended before memlog was loaded";
        break;
    case ML_ATTEMPT_REFUSED:
        break;
    }
    runs_unprofiled(findings, argv[0], why);
    return false;
}

static void check_environment(struct ml_findings *findings) {
    const char *preload = getenv("LD_PRELOAD");
    if (preload == NULL || preload[0] == '\0') {
        return;
    }
    const char *hint = strstr(preload, "heaptrack") != NULL
                           ? ": two profilers at once see each other's memory; unset it"
                           : "; memlog is loaded before it";
    ml_doctor_find(findings, ML_DOCTOR_NOTE, "environment", "LD_PRELOAD=%s%s", preload, hint);
}

static void check_program(
    struct ml_findings *findings,
    const struct ml_never_list *never,
    char *const *argv,
    const char *allocators
) {
    int executable_fd = -1;
    char executable[PATH_MAX];
    struct ml_command_line line = {.count = 0};
    find_program(argv[0], executable);
    if (ml_command_line_from_argv(&line, argv) == ML_OK) {
        (void)ml_doctor_forbidden(findings, never, &line, executable);
        ml_command_line_fini(&line);
    }
    const enum ml_image_kind kind = ml_probe_program(argv, &executable_fd);
    if (kind == ML_IMAGE_PRELOADABLE) {
        if (try_program(findings, argv)) {
            ml_doctor_allocator(findings, executable_fd, executable, allocators);
            ml_doctor_scripts(findings, executable, argv);
        }
    } else if (kind == ML_IMAGE_GONE) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_FAIL,
            "program",
            "%s could not be tried: there is no such program, or this system permits no ptrace",
            argv[0]
        );
    } else {
        runs_unprofiled(findings, argv[0], ml_image_text(kind));
    }
    ml_descriptor_close(&executable_fd);
    check_environment(findings);
}

/* ---- a triggers file */

/* Whether this system has the limits and the pressure file that memory rules read. */
static void check_memory_rules(struct ml_findings *findings, const struct ml_trigger_rules *rules) {
    struct ml_cgroup group;
    unsigned limited = 0;
    if (!ml_trigger_rules_watch_memory(rules)) {
        return;
    }
    for (bool more = ml_cgroup_of(getpid(), &group); more; more = ml_cgroup_up(&group)) {
        if (ml_cgroup_limit_bytes(&group) != 0) {
            limited++;
            ml_doctor_find(
                findings,
                ML_DOCTOR_OK,
                "triggers",
                "the limit of %s is looked at every second, and the machine's",
                group.name
            );
        }
    }
    if (limited == 0) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_OK,
            "triggers",
            "this process is in no control group with a limit (what runs in one has its own looked "
            "at); the machine's is looked at every second"
        );
    }
    if ((rules->service.pressure_some_percent != 0 || rules->service.pressure_full_percent != 0) &&
        access(ML_PRESSURE_FILE, R_OK) != 0) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_NOTE,
            "triggers",
            "this kernel tells no memory pressure (%s): pressure.some_percent and "
            "pressure.full_percent never dump; pressure.events does",
            ML_PRESSURE_FILE
        );
    }
}

static void check_triggers(struct ml_findings *findings, const char *path) {
    struct ml_trigger_rules rules = ml_trigger_rules_default();
    struct ml_error_message error = {.text = ""};
    if (ml_trigger_rules_load(&rules, path, &error) != ML_OK) {
        ml_doctor_find(findings, ML_DOCTOR_FAIL, "triggers", "%s", error.text);
        return;
    }
    ml_doctor_find(
        findings,
        ML_DOCTOR_OK,
        "triggers",
        "%s: processes are looked at every %" PRIu32 " s, at most %" PRIu32 " dumps in %" PRIu32
        " s (0: no limit)",
        path,
        rules.interval_seconds,
        rules.service.most_dumps,
        rules.service.most_seconds
    );
    check_memory_rules(findings, &rules);
}

/* ---- */

struct arguments {
    bool json;
    uint32_t pid, repair; /* 0: none */
    const char *triggers;
    char allocators[ML_CONTROL_ALLOCATORS_BYTES];
    char *const *program;
};

static bool read_allocator(void *to, const char *value, struct ml_error_message *why) {
    struct arguments *arguments = to;
    return ml_options_add_allocator(arguments->allocators, value, why);
}

static const struct ml_option options[] = {
    {.name = "--pid",
     ML_COUNT_TO(struct arguments, pid),
     .least = 1,
     .most = INT_MAX,
     .value = "PID",
     .wants = "a process id",
     .help = "why a process that runs is not recorded, and whether memlog attach can record it; a "
             "PID in PROGRAM's place means the same"},
    {.name = "--repair",
     ML_COUNT_TO(struct arguments, repair),
     .least = 1,
     .most = INT_MAX,
     .value = "PID",
     .wants = "a process id",
     .help = "take out of a process what a memlog that was killed has left in it"},
    {.name = "--triggers",
     ML_PATH_TO(struct arguments, triggers),
     .value = "FILE",
     .help = "what is wrong in a triggers file, and what of it this system cannot tell"},
    {.name = "--allocator",
     ML_READ_BY(read_allocator),
     .value = "NAME=PREFIX",
     .wants = "NAME=PREFIX",
     .help = "an allocator inside PROGRAM whose functions begin with PREFIX, as memlog run takes "
             "it. Repeatable"},
    ML_ROW_JSON(struct arguments, json),
};

const struct ml_option_table ml_doctor_table = {
    .program = "memlog",
    .name = "doctor",
    .summary = "find out why nothing is recorded",
    .usage = "[OPTIONS] [PROGRAM [ARGS...] | PID]",
    .about = "Finds out why nothing is recorded: whether memlog's parts are there, what this "
             "system permits, whether PROGRAM can be profiled (it is not run, but for its first "
             "instruction), and whether an allocator inside it is recorded. Ends with 1 if "
             "something stands in the way.",
    ML_OPTIONS(options),
    .operands = ML_OPERANDS_COMMAND,
    .operands_offset = offsetof(struct arguments, program),
    .example = "memlog doctor python3",
};

/* A number alone is a process, unless it names a program. */
static void take_pid(struct arguments *arguments) {
    char executable[PATH_MAX];
    uint64_t pid = 0;
    char *const *program = arguments->program;
    if (program[0] == NULL || program[1] != NULL || arguments->pid != 0 ||
        !ml_count_read(program[0], INT_MAX, &pid) || pid == 0) {
        return;
    }
    find_program(program[0], executable);
    if (executable[0] == '\0') {
        arguments->pid = (uint32_t)pid;
        arguments->program++;
    }
}

int ml_command_doctor(char *const *words) {
    struct ml_findings findings = {.json = ml_json_over(stdout)};
    struct arguments arguments = {.pid = 0};
    int exit_code = 0;
    if (!ml_commands_read(&ml_doctor_table, words, &arguments, NULL, &exit_code)) {
        return exit_code;
    }
    take_pid(&arguments);
    if ((arguments.pid != 0) + (arguments.repair != 0) + (arguments.program[0] != NULL) > 1) {
        return ml_commands_wrong(
            &ml_doctor_table, "--pid, --repair and a program are several things: one of them"
        );
    }
    findings.is_json = arguments.json;
    if (findings.is_json) {
        ml_json_open(&findings.json, '{');
        ml_json_number_member(&findings.json, "memlog", 1);
        ml_json_open_member(&findings.json, "findings", '[');
    }
    ml_doctor_parts(&findings);
    ml_doctor_system(&findings);
    ml_doctor_kernel(&findings);
    ml_doctor_limits(&findings);
    ml_doctor_cache(&findings);
    struct ml_never_list never = ml_doctor_never(&findings);
    ml_doctor_self_test(&findings);
    if (arguments.triggers != NULL) {
        check_triggers(&findings, arguments.triggers);
    }
    if (arguments.pid != 0) {
        ml_doctor_process(&findings, &never, arguments.pid, arguments.allocators);
        ml_doctor_scripts_of(&findings, arguments.pid);
    } else if (arguments.repair != 0) {
        ml_doctor_repair(&findings, arguments.repair);
    } else if (arguments.program[0] != NULL) {
        check_program(&findings, &never, arguments.program, arguments.allocators);
    }
    ml_never_list_fini(&never);
    if (findings.is_json) {
        ml_json_close(&findings.json, ']');
        ml_json_close(&findings.json, '}');
        (void)putchar('\n');
    }
    return findings.failed ? 1 : 0;
}
