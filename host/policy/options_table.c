/* The options of `memlog run`: one row each, and the functions of those that do more than store a
 * value. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/entry/allocator_family.h"
#include "base/input_file.h"
#include "base/size.h"
#include "base/upload.h"
#include "host/policy/options.h"
#include "ipc/wire/staging.h"

/* 25 % makes thirty dumps from 1 MiB to 1 GiB: enough to see what grew when, and too few to fill a
 * disk. */
enum { PEAK_STEP_PERCENT = 25, PEAK_STEP_PERCENT_MAX = 1000, PEAK_STEP_DIGITS = 4 };

/* With less, not even the tables of one small process fit. Also the minimum of --client-memory. */
enum { SERVICE_MEMORY_MIN_BYTES = 1 << 20 };

/* memlog.service.kMaxClients: no run has more processes. */
enum { KEEP_PROCESSES_MAX = 65536 };

/* A look at a process takes some 10 us. */
enum { WHOLE_INTERVAL_MIN_MS = 5, WHOLE_INTERVAL_MAX_MS = 60000 };

enum { DUMP_INTERVAL_MIN_MS = 100, SECONDS_MAX = 365 * 24 * 3600, UNWIND_CHECK_MAX = 1 << 30 };

const char *const ml_stack_mode_names[] = {
    "native", "native-with-thread-names", "pseudo", "mixed", NULL};
const char *const ml_sandbox_names[ML_SANDBOX_COUNT + 1] = {"auto", "strict", "none"};
const char *const ml_types_names[ML_TYPES_COUNT + 1] = {"none", "vtable", "python"};
const char *const ml_whole_mode_names[ML_WHOLE_MODE_COUNT + 1] = {"run", "stop", "off"};
const char *const ml_upload_names[] = {"plain", "none", "all", NULL};
static const char *const frames_names[ML_FRAMES_COUNT + 1] = {"native", "python"};
static const char *const overrun_names[] = {"block", "sample", NULL};

bool ml_options_add_allocator(
    char list[ML_CONTROL_ALLOCATORS_BYTES], const char *value, struct ml_error_message *why
) {
    const enum ml_allocator_list_refusal refusal =
        ml_allocator_families_add(list, ML_CONTROL_ALLOCATORS_BYTES, value);
    if (refusal != ML_ALLOCATOR_LIST_READ) {
        ml_error_set(
            why,
            "%s (NAME=PREFIX is wanted, such as pool=pool_)",
            ml_allocator_list_refusal_text(refusal)
        );
    }
    return refusal == ML_ALLOCATOR_LIST_READ;
}

/* One NAME=PREFIX behind the others, or "off". */
static bool read_allocator(void *to, const char *value, struct ml_error_message *why) {
    struct ml_options *options = to;
    if (strcmp(value, "off") == 0) {
        options->leaves_executables = true;
        return true;
    }
    return ml_options_add_allocator(options->allocators, value, why);
}

static bool read_role(void *to, const char *value, struct ml_error_message *why) {
    const struct ml_options *options = to;
    enum memlog_service_role role = MEMLOG_SERVICE_ROLE_OTHER;
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals[1] == '\0') {
        return false;
    }
    char *name = strndup(value, (size_t)(equals - value));
    const bool fine = name != NULL && ml_role_parse(name, &role, why) == ML_OK &&
                      ml_patterns_add(options->roles, equals + 1, (int)role, why) == ML_OK;
    free(name);
    return fine;
}

static bool read_only(void *to, const char *value, struct ml_error_message *why) {
    return ml_patterns_add(((struct ml_options *)to)->only, value, 0, why) == ML_OK;
}

static bool read_never(void *to, const char *value, struct ml_error_message *why) {
    return ml_patterns_add(((struct ml_options *)to)->never, value, 0, why) == ML_OK;
}

static bool read_page(void *to, const char *value, struct ml_error_message *why) {
    return ml_page_place_parse(value, &((struct ml_options *)to)->page, why) == ML_OK;
}

static bool read_no_page(void *to, const char *value, struct ml_error_message *why) {
    (void)value;
    (void)why;
    ((struct ml_options *)to)->page = (struct ml_page_place){.kind = ML_PAGE_NONE};
    return true;
}

/* Dumps more often than that would be all that the run does. */
static bool read_dump_interval(void *to, const char *value, struct ml_error_message *why) {
    uint64_t ms = 0;
    (void)why;
    if (!ml_duration_read(value, &ms) || ms < DUMP_INTERVAL_MIN_MS ||
        ms > SECONDS_MAX * UINT64_C(1000)) {
        return false;
    }
    ((struct ml_options *)to)->dump_interval_ms = ms;
    return true;
}

/* "25%" or "50M"; without a value 25 %. */
static bool read_peak_step(void *to, const char *value, struct ml_error_message *why) {
    struct ml_peak_step step = {.is_set = true};
    const size_t count = value != NULL ? strlen(value) : 0;
    uint64_t percent = PEAK_STEP_PERCENT;
    bool fine = true;
    (void)why;
    if (count > 0 && value[count - 1] == '%') {
        char number[PEAK_STEP_DIGITS + 1];
        (void)snprintf(number, sizeof(number), "%.*s", (int)count - 1, value);
        fine = count <= sizeof(number) && ml_count_read(number, PEAK_STEP_PERCENT_MAX, &percent);
    } else if (value != NULL) {
        fine = ml_size_read(value, &step.bytes);
        percent = 0;
    }
    step.percent = (uint32_t)percent;
    if (fine && (step.percent != 0 || step.bytes != 0)) {
        ((struct ml_options *)to)->peak_step = step;
        return true;
    }
    return false;
}

static bool read_overhead(void *to, const char *value, struct ml_error_message *why) {
    (void)why;
    return ml_overhead_read(value, &((struct ml_options *)to)->overhead.promised_ppm);
}

static bool read_threshold(void *to, const char *value, struct ml_error_message *why) {
    return ml_trigger_rules_threshold(&((struct ml_options *)to)->triggers, value, why) == ML_OK;
}

static bool read_triggers(void *to, const char *value, struct ml_error_message *why) {
    return ml_trigger_rules_load(&((struct ml_options *)to)->triggers, value, why) == ML_OK;
}

static bool read_upload(void *to, const char *value, struct ml_error_message *why) {
    struct ml_upload_options *upload = &((struct ml_options *)to)->upload;
    upload->url = value;
    return ml_upload_target_parse(value, &upload->target, why) == ML_OK;
}

static bool read_upload_host(void *to, const char *value, struct ml_error_message *why) {
    (void)why;
    ((struct ml_options *)to)->upload.host = value;
    return ml_upload_is_word(value);
}

static bool read_upload_version(void *to, const char *value, struct ml_error_message *why) {
    (void)why;
    ((struct ml_options *)to)->upload.version = value;
    return ml_upload_is_word(value);
}

/* Accept a file that does not exist yet: libcurl opens it by name at each upload. */
static bool read_upload_ca(void *to, const char *value, struct ml_error_message *why) {
    int fd = ml_input_regular(value);
    if (fd < 0 && errno != ENOENT) {
        ml_error_set(why, "%s", ml_input_trouble(errno));
        return false;
    }
    ml_descriptor_close(&fd);
    ((struct ml_options *)to)->upload.ca_file = value;
    return true;
}

int ml_signal_parse(const char *name) {
    uint64_t number = 0;
    if (ml_count_read(name, (uint64_t)SIGRTMAX, &number)) {
        return (int)number;
    }
    if (strncasecmp(name, "SIG", 3) == 0) {
        name += 3;
    }
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *known = sigabbrev_np(i);
        if (known != NULL && strcasecmp(name, known) == 0) {
            return i;
        }
    }
    return 0;
}

static bool read_dump_signal(void *to, const char *value, struct ml_error_message *why) {
    const int number = ml_signal_parse(value);
    if (number == SIGKILL || number == SIGSTOP || number == SIGCHLD) {
        ml_error_set(why, "memlog cannot take this signal; USR2 is one that it can");
    }
    ((struct ml_options *)to)->dump_signal = number;
    return number != 0 && why->text[0] == '\0';
}

/* The name of a process, as `memlog start` takes it. */
static bool read_attach_name(void *to, const char *value, struct ml_error_message *why) {
    struct ml_patterns *patterns = ml_patterns_new();
    const bool fine =
        patterns != NULL && value[0] != '\0' && ml_patterns_add(patterns, value, 0, why) == ML_OK;
    ml_patterns_free(patterns);
    ((struct ml_options *)to)->name = value;
    return fine;
}

static bool read_attach_duration(void *to, const char *value, struct ml_error_message *why) {
    (void)why;
    uint64_t *duration_ms = &((struct ml_options *)to)->duration_ms;
    return ml_duration_read(value, duration_ms) && *duration_ms > 0;
}

/* First what only `memlog run` takes, then what `memlog attach` takes as well, then what only that
 * does: each command's options stand in one piece. */
enum { OF_RUN_ALONE = 6, OF_ATTACH_ALONE = 3 };

static const struct ml_option options[] = {
    {.name = "--memlog",
     ML_WORD_TO(struct ml_options, mode),
     .value = "MODE",
     .words = ml_mode_names,
     .group = "Which processes",
     .help = "those that are profiled (default: all):"},
    {.name = "--only",
     ML_READ_BY(read_only),
     .value = "REGEX",
     .help = "profile only command lines that match"},
    {.name = "--never",
     ML_READ_BY(read_never),
     .value = "REGEX",
     .help = "profile none that match"},
    {.name = "--end-with-root",
     ML_FLAG_TO(struct ml_options, end_with_root),
     .help = "dump when the first process ends, do not wait for the others"},
    {.name = "--budget",
     ML_PATH_TO(struct ml_options, budget),
     .value = "FILE",
     .group = "Build servers",
     .help =
         "hold the final dump against the rules of FILE, as memlog check does, and end with its "
         "exit code where the program's is 0: 3 a rule is broken, 4 one can be called neither"},
    {.name = "--budget-base",
     ML_PATH_TO(struct ml_options, budget_base),
     .value = "DUMP",
     .help = "what the rules count growth from"},
    {.name = "--budget-suppressions",
     ML_PATH_TO(struct ml_options, budget_suppressions),
     .value = "FILE",
     .help = "known leaks that the rules leave out, as memlog check --suppressions does"},
    {.name = "--memlog-role",
     .group = "Roles and lists",
     ML_READ_BY(read_role),
     .value = "ROLE=REGEX",
     .help = "command lines that match REGEX are a browser, renderer, gpu, utility or other; built "
             "in: --type=ROLE, and the first process is the browser"},
    {.name = "--never-list",
     ML_PATH_TO(struct ml_options, never_list),
     .value = "FILE",
     .help =
         "record nothing that a line of FILE matches, whoever asks; what /etc/memlog/never lists "
         "is never recorded on this machine"},
    {.name = "--keep-processes",
     ML_COUNT_TO(struct ml_options, keep_processes),
     .most = KEEP_PROCESSES_MAX,
     .value = "N",
     .help = "profiles of ended processes that stay apart, 1000 by default; beyond it the "
             "shortest-lived are folded by program, with their sums"},
    {.name = "--memlog-overrun",
     ML_WORD_TO(struct ml_options, overrun),
     .words = overrun_names,
     .group = "What is recorded",
     .help = "what a full pipe does: wait, at most 1 s, then drop and count (default); or record a "
             "sample, the smaller the fuller it is, until it has room again"},
    {.name = "--memlog-buffer-bytes",
     ML_SIZE_TO(struct ml_options, buffer_bytes),
     .least = 1,
     .most = (uint64_t)ML_STAGING_SLOTS_MAX * ML_FRAME_MAX_BYTES,
     .value = "BYTES",
     .help = "buffer of each thread, 4K (default; 64K with --memlog-overrun=sample) to 1M: takes "
             "what a full pipe does not; memory of the program once it is used"},
    ML_ROW_STACK_MODE(struct ml_options, stack_mode),
    ML_ROW_SAMPLING(struct ml_options, sampling),
    ML_ROW_SAMPLING_RATE(struct ml_options, sampling_bytes),
    {.name = "--overhead",
     ML_READ_BY(read_overhead),
     .value = "PERCENT",
     .wants = "a share of a processor's time such as 1% or 0.5%, 50% at most,",
     .help =
         "sample so that memlog takes no more than PERCENT of each process's processor time, as "
         "its client measures it: the interval follows, from 4K (or --memlog-sampling-rate) to "
         "64M; memlog ps and the report tell what it costs"},
    {.name = "--allocator",
     ML_READ_BY(read_allocator),
     .value = "NAME=PREFIX",
     .wants = "NAME=PREFIX, or off,",
     .help = "an executable's own allocator whose functions begin with PREFIX (pool_malloc, "
             "pool_free, ...) is recorded, too; those of jemalloc, tcmalloc, mimalloc, Chromium "
             "and Firefox are known. off: executables are left as they are. Repeatable"},
    {.name = "--frames",
     ML_WORD_TO(struct ml_options, frames),
     .words = frames_names,
     .help = "whose functions stand in stacks: native ones (default); or those that Python "
             "3.11, 3.13 or 3.14 runs, with their files and lines, between them:"},
    {.name = "--unwind-check",
     ML_COUNT_TO(struct ml_options, unwind_check),
     .least = 1,
     .most = UNWIND_CHECK_MAX,
     .value = "N",
     .help = "every Nth stack is also walked by libunwind, differences are reported"},
    {.name = "--whole",
     ML_WORD_TO(struct ml_options, whole),
     .words = ml_whole_mode_names,
     .help =
         "whose the whole memory of a process is, mapping by mapping, at a dump: read while the "
         "process runs (default); while it is stopped, for some 20 ms and at most a second, so "
         "that "
         "the figures are of one moment; or not at all"},
    {.name = "--whole-interval",
     ML_COUNT_TO(struct ml_options, whole_interval_ms),
     .least = WHOLE_INTERVAL_MIN_MS,
     .most = WHOLE_INTERVAL_MAX_MS,
     .value = "MS",
     .help =
         "how often it is looked whether a process holds more than ever, 100 by default: then it "
         "is read, for dumps after its end"},
    {.name = "--types",
     ML_WORD_TO(struct ml_options, types),
     .words = ml_types_names,
     .help =
         "vtable: with the memory of a process its C++ objects are read, whose first word says "
         "of which class they are, for memlog report --by=type; python: of Python's objects, which "
         "hold their type, where PYTHONMALLOC=malloc has malloc make them; takes up to half a "
         "second, and some 0.3 s of a processor for each GiB"},
    {.name = "--output",
     .short_name = "-o",
     ML_PATH_TO(struct ml_options, output),
     .value = "DIR",
     .group = "Dumps",
     .help = "where dumps go; default memlog.PROGRAM.PID in the current folder"},
    {.name = "--dump-interval",
     ML_READ_BY(read_dump_interval),
     .value = "SECONDS",
     .wants = "a time of 0.1 seconds to 365 days",
     .help = "more dumps: every so often (90, 0.5, 5m, 2h)"},
    {.name = "--dump-signal",
     ML_READ_BY(read_dump_signal),
     .value = "SIG",
     .wants = "the name or number of a signal, such as USR2,",
     .help = "and when memlog gets the signal"},
    {.name = "--dump-at-peak",
     ML_READ_BY(read_peak_step),
     .is_value_optional = true,
     .value = "STEP",
     .wants = "by how much the peak has risen, such as 25% or 50M,",
     .help = "and whenever the tree has come to hold STEP more than at the last of these dumps: a "
             "size, or a share such as 25% (default; 1M at least)"},
    {.name = "--threshold",
     ML_READ_BY(read_threshold),
     .value = "ROLE=SIZE",
     .help = "and when a process has more private memory than its role may (browser and gpu 400M, "
             "renderer 500M, utility 250M; off: none), and again at 500M more"},
    {.name = "--trigger-interval",
     ML_SECONDS_TO(struct ml_options, triggers.interval_seconds),
     .least = 1,
     .most = SECONDS_MAX,
     .value = "SECONDS",
     .help = "how often that is looked at (default: 900)"},
    {.name = "--triggers",
     ML_READ_BY(read_triggers),
     .value = "FILE",
     .help = "more that makes a dump, in JSON: growth, live heap, a stack's budget, limits, "
             "pressure, ...: docs/triggers-and-uploads.md lists the keys. Who is killed by SIGKILL "
             "is dumped in any "
             "case. DIR/triggers.log tells every decision"},
    ML_ROWS_PAGE(struct ml_options, read_page, page_remote),
    {.name = "--no-page", .kind = ML_OPTION_ACTION, .read = read_no_page, .help = "no live page"},
    {.name = "--upload",
     ML_READ_BY(read_upload),
     .is_secret = true,
     .value = "URL",
     .group = "Uploads",
     .help = "send the dumps that triggers and 'memlog upload' make, pruned, to https://..., "
             "s3://BUCKET/PREFIX, s3+https://ENDPOINT/BUCKET/PREFIX, pyroscope+https://..., "
             "pyroscope-ingest+https://..., otlp+https://..., or into a folder. Nothing leaves "
             "without it"},
    {.name = "--upload-max-bytes",
     ML_SIZE_TO(struct ml_options, upload.max_bytes),
     .least = ML_UPLOAD_LEAST_BYTES,
     .value = "BYTES",
     .help = "how large it may be (10000000), 4K or more"},
    {.name = "--upload-prune",
     ML_COUNT_TO(struct ml_options, upload.prune),
     .least = 1,
     .most = ML_UPLOAD_PRUNE_MAX,
     .value = "RATIO",
     .help = "and how many times smaller than the whole body; 100 still accounts for about half of "
             "what is live, as Chromium's"},
    {.name = "--upload-names",
     ML_WORD_TO(struct ml_options, upload.names),
     .words = ml_upload_names,
     .help = "which names of threads and processes may leave: plain words (default), none, all"},
    {.name = "--upload-host",
     ML_READ_BY(read_upload_host),
     .value = "NAME",
     .wants = ML_UPLOAD_WORD_WANTS,
     .help = "this machine's name in a report (default: its own); none: no name"},
    {.name = "--upload-version",
     ML_READ_BY(read_upload_version),
     .value = "TEXT",
     .wants = ML_UPLOAD_WORD_WANTS,
     .help = "the program's version in a report, as you count"},
    {.name = "--memlog-keep-small-allocations",
     ML_FLAG_TO(struct ml_options, keep_small_allocations),
     .help = "uploads unpruned too; dumps are always complete"},
    {.name = "--upload-token-file",
     ML_PATH_TO(struct ml_options, upload.token_file),
     .value = "FILE",
     .help = "a bearer token in its first line"},
    {.name = "--upload-ca",
     ML_READ_BY(read_upload_ca),
     .value = "FILE",
     .help = "certificates to trust (default: the system's)"},
    {.name = "--upload-spool",
     ML_PATH_TO(struct ml_options, upload.spool),
     .value = "DIR",
     .help = "where reports wait"},
    {.name = "--upload-wait",
     ML_SECONDS_TO(struct ml_options, upload.wait_s),
     .most = SECONDS_MAX,
     .value = "SECONDS",
     .help = "how long the run's end waits for them (10; 0: not at all)"},
    {.name = "--service-memory",
     ML_SIZE_TO(struct ml_options, service_memory_bytes),
     .least = SERVICE_MEMORY_MIN_BYTES,
     .value = "BYTES",
     .group = "memlog itself",
     .help = "what memlog-service's tables may take, by default a quarter of the machine's or "
             "control group's memory; before it is at an end the largest process is sampled, then "
             "only its totals are kept"},
    {.name = "--client-memory",
     ML_SIZE_TO(struct ml_options, client_memory_bytes),
     .least = SERVICE_MEMORY_MIN_BYTES,
     .value = "BYTES",
     .help = "what one process may hold of that, by default nine tenths; beyond it only its totals "
             "are kept, then it is recorded no more; the others lose nothing"},
    {.name = "--sandbox",
     ML_WORD_TO(struct ml_options, sandbox),
     .words = ml_sandbox_names,
     .help = "auto (default): all that the kernel permits; strict: all or nothing"},
    {.name = "--quiet",
     .short_name = "-q",
     ML_FLAG_TO(struct ml_options, quiet),
     .help = "say nothing"},
    {.name = "--name",
     ML_READ_BY(read_attach_name),
     .value = "REGEX",
     .group = "Which processes, and how long",
     .help = "every process of yours whose name or command line matches, as they run now"},
    {.name = "--duration",
     ML_READ_BY(read_attach_duration),
     .value = "SECONDS",
     .wants = "a length of time (2, 0.5, 1.5m, 2h)",
     .help = "end after so long; without it at ^C, or with the last of the processes"},
    {.name = "--min-private",
     ML_SIZE_TO(struct ml_options, min_private_bytes),
     .least = 1,
     .value = "SIZE",
     .help = "those alone that have so much private memory now, swapped out or not"},
};
enum {
    OPTIONS_COUNT = sizeof(options) / sizeof(options[0]),
    OF_RUN = OPTIONS_COUNT - OF_ATTACH_ALONE,
    OF_ATTACH = OPTIONS_COUNT - OF_RUN_ALONE,
};

const char *ml_options_of_run_alone(const char *word) {
    for (size_t i = 0; i < OF_RUN_ALONE; i++) {
        const size_t count = strlen(options[i].name);
        if (strncmp(word, options[i].name, count) == 0 &&
            (word[count] == '=' || word[count] == '\0')) {
            return options[i].name;
        }
    }
    return NULL;
}

const struct ml_option_table ml_run_table = {
    .program = "memlog",
    .name = "run",
    .summary = "run a program and profile all its processes",
    .usage = "[OPTIONS] -- PROGRAM [ARGS...]",
    .about = "Runs PROGRAM with every process that it starts under memlog and writes a dump of who "
             "holds which memory when the last of them has ended. stdin, stdout and the exit code "
             "are the program's; memlog speaks on stderr.",
    .options = options,
    .options_count = OF_RUN,
    .operands = ML_OPERANDS_COMMAND,
    .operands_offset = offsetof(struct ml_options, program),
    .operands_least = 1,
    .operands_missing = "no program given: memlog run [OPTIONS] -- PROGRAM [ARGS...]",
    .notes = "Sizes take K, M, G and T (times 1024), times s, m, h and d.\n"
             "\n"
             "Exit code: the program's, 128+N if signal N killed it; 125 memlog failed, 126 the "
             "program cannot be run, 127 there is no such program, 2 a wrong command line. With "
             "--budget and a program that ends with 0: 3, 4 as 'memlog check'.",
    .example = "memlog run --memlog=all -- sqlite3 test.db 'select count(*) from t'",
};

const struct ml_option_table ml_attach_table = {
    .program = "memlog",
    .name = "attach",
    .summary = "profile processes that run already",
    .usage = "[OPTIONS] PID...",
    .about =
        "Records processes that were not started under memlog, and the children that they fork, "
        "from now until ^C, and leaves them as they were. What they had allocated before is not "
        "known. Each is held up for some milliseconds. It takes the rights of a debugger; "
        "'memlog doctor --pid=PID' says whether it can be done.",
    .options = options + OF_RUN_ALONE,
    .options_count = OF_ATTACH,
    .operands = ML_OPERANDS_PIDS,
    .operands_offset = offsetof(struct ml_options, pids),
    .operands_most = ML_PIDS_MAX,
    .notes =
        "Sizes take K, M, G and T (times 1024), times s, m, h and d.\n"
        "\n"
        "Exit code: 0; 125 memlog failed, or could attach to no process; 2 a wrong command line.",
    .example = "memlog attach --duration=10 4711",
};
