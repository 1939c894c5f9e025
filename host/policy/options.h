/* The command lines of `memlog run` and `memlog attach`. Room: host. Context: start of the program;
 * caller's storage.
 *
 * One rule: nothing is guessed and nothing is ignored. An option, a value or a MEMLOG_* environment
 * key that this version does not support is an error that names it. */
#ifndef MEMLOG_HOST_POLICY_OPTIONS_H
#define MEMLOG_HOST_POLICY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "base/option_table.h"
#include "host/policy/mode.h"
#include "host/policy/overhead.h"
#include "host/policy/page_place.h"
#include "host/policy/patterns.h"
#include "host/policy/trigger_rules.h"
#include "host/policy/upload_target.h"
#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"
#include "ipc/wire/staging.h"

/* What happens when a pipe is full. The numbers are those of ml_control_page.overrun. */
enum ml_overrun { ML_OVERRUN_BLOCK = 0, ML_OVERRUN_SAMPLE = 1 };

enum ml_sandbox { ML_SANDBOX_AUTO = 0, ML_SANDBOX_STRICT, ML_SANDBOX_NONE, ML_SANDBOX_COUNT };

/* How a process's mappings are read. */
enum ml_whole_mode { ML_WHOLE_RUN = 0, ML_WHOLE_STOP, ML_WHOLE_OFF, ML_WHOLE_MODE_COUNT };

/* What is read of blocks whose type nobody reports. */
enum ml_types { ML_TYPES_NONE = 0, ML_TYPES_VTABLE, ML_TYPES_PYTHON, ML_TYPES_COUNT };

/* How often a process's private memory is looked at: 20 processes take 0.4 % of a processor. */
enum { ML_WHOLE_INTERVAL_MS = 100 };

/* How many ended processes keep a profile of their own in a report. That is more than anybody
 * reads, and takes tens of MiB in the service: a compiler's profile has 50 to 500 KiB. */
enum { ML_KEEP_PROCESSES_DEFAULT = 1000 };

/* Where pruned dumps are sent. `url` NULL: nowhere. */
struct ml_upload_options {
    const char *url;
    struct ml_upload_target target;
    uint64_t max_bytes;
    uint32_t prune;         /* bodies are so many times smaller than whole ones; 0: by size alone */
    unsigned names;         /* index in ml_upload_names; see tools/analyzer/upload/redact.h */
    const char *host;       /* this machine's name in a report; NULL: as the analyzer says it */
    const char *version;    /* of the program, by its user's word; NULL: not told */
    const char *token_file; /* a bearer token in its first line; NULL: none */
    const char *ca_file;    /* certificates to trust; NULL: the system's */
    const char *spool;      /* NULL: in the user's state folder */
    uint32_t wait_s;        /* at the run's end; what is not sent by then stays in the spool */
};

/* --dump-at-peak: how far the tree's peak must rise above that of the last such dump to take
 * another. */
struct ml_peak_step {
    bool is_set;
    uint32_t percent; /* of that peak, and at least 1 MiB; 0: `bytes` counts */
    uint64_t bytes;   /* 0: `percent` counts */
};

struct ml_options {
    enum ml_mode mode;
    enum ml_stack_mode stack_mode;
    uint64_t sampling_bytes; /* 1: every allocation; at most ML_SAMPLING_MAX_BYTES */
    bool sampling;           /* --memlog-sampling: at the default rate unless a rate is given */
    struct ml_overhead_rule overhead; /* --overhead; then sampling_bytes is where it begins */
    bool keep_small_allocations;
    enum ml_overrun overrun;
    enum ml_sandbox sandbox;
    enum ml_whole_mode whole;
    uint32_t whole_interval_ms; /* how often it is looked whether a process holds most */
    enum ml_types types;
    uint64_t buffer_bytes;                        /* staging of a thread; 0: the default */
    uint32_t staging_slots;                       /* the same in slots of 4 KiB */
    uint32_t unwind_check;                        /* 0: none */
    enum ml_frames frames;                        /* of interpreters, in stacks */
    bool leaves_executables;                      /* allocators inside executables are not hooked */
    char allocators[ML_CONTROL_ALLOCATORS_BYTES]; /* further ones: NAME=PREFIX,... */
    uint64_t service_memory_bytes; /* bound of memlog-service's tables; 0: a part of the memory */
    uint64_t client_memory_bytes;  /* bound of one process's part of them; 0: nine tenths */
    uint32_t keep_processes;       /* ended processes whose profiles are not folded */
    bool end_with_root;
    bool quiet;
    bool help;                       /* --help was given: nothing else counts */
    const char *output;              /* NULL: memlog.PROGRAM.PID in the current folder */
    const char *budget;              /* rules that the final dump is held against; NULL: none */
    const char *budget_base;         /* a dump that growth is counted from; NULL: none */
    const char *budget_suppressions; /* known leaks that it leaves out; NULL: none */
    struct ml_trigger_rules triggers;
    struct ml_page_place page; /* where the live page is; ML_PAGE_NONE: there is none */
    bool page_remote;          /* other machines may reach it */
    struct ml_upload_options upload;
    uint64_t dump_interval_ms; /* 0: none */
    struct ml_peak_step peak_step;
    int dump_signal;           /* 0: none */
    struct ml_patterns *roles; /* (regex, enum memlog_service_role) */
    struct ml_patterns *only;
    struct ml_patterns *never;
    const char *never_list;     /* a never list beside the machine's; NULL: none */
    char *const *program;       /* argv of the program, borrowed from the command line */
    struct ml_pids pids;        /* to attach to */
    const char *name;           /* an expression over names and command lines; NULL: pids alone */
    uint64_t duration_ms;       /* for which they are recorded; 0: until ^C */
    uint64_t min_private_bytes; /* that a process must have to be attached to; 0: any */
};

/* "auto", "strict", "none"; NULL behind the last. */
extern const char *const ml_sandbox_names[ML_SANDBOX_COUNT + 1];

/* The values of --whole; NULL behind the last. */
extern const char *const ml_whole_mode_names[ML_WHOLE_MODE_COUNT + 1];

/* The values of --types; NULL behind the last. */
extern const char *const ml_types_names[ML_TYPES_COUNT + 1];

/* The values of --upload-names; NULL behind the last. */
extern const char *const ml_upload_names[];

/* In the order of enum ml_stack_mode; NULL behind the last. */
extern const char *const ml_stack_mode_names[];

/* Options that `memlog run` shares with other commands. Each is stored in a member of the command's
 * struct. */
#define ML_ROW_SAMPLING(type, member)                                                              \
    {                                                                                              \
        .name = "--memlog-sampling", ML_FLAG_TO(type, member),                                     \
        .help =                                                                                    \
            "record one allocation in 4K bytes on average, and those that are larger; figures "    \
            "are estimates with their standard errors then. Without: every allocation"             \
    }
#define ML_ROW_SAMPLING_RATE(type, member)                                                         \
    {                                                                                              \
        .name = "--memlog-sampling-rate", ML_SIZE_TO(type, member), .least = 1,                    \
        .most = ML_SAMPLING_MAX_BYTES, .value = "BYTES",                                           \
        .help = "the same, one in BYTES; 1: every allocation"                                      \
    }
#define ML_ROW_STACK_MODE(type, member)                                                            \
    {                                                                                              \
        .name = "--memlog-stack-mode", ML_WORD_TO(type, member), .value = "MODE",                  \
        .words = ml_stack_mode_names,                                                              \
        .help = "what stands in a stack: its functions; below them the thread's name, too; that "  \
                "name and the scopes that the program opens (memlog.h) alone; or scopes and "      \
                "functions:"                                                                       \
    }
#define ML_ROWS_PAGE(type, read_page, remote)                                                      \
    {.name = "--page",                                                                             \
     ML_READ_BY(read_page),                                                                        \
     .is_value_optional = true,                                                                    \
     .value = "[ADDRESS:]PORT|unix:PATH",                                                          \
     .help = "where the live page is: 127.0.0.1 and a free port (default); its address with a "    \
             "token is printed on stderr"},                                                        \
    {                                                                                              \
        .name = "--page-remote", ML_FLAG_TO(type, remote),                                         \
        .help = "let ADDRESS be one that other machines reach"                                     \
    }

/* The interval that --memlog-sampling and --memlog-sampling-rate mean together. `rate_bytes` is 0
 * if the latter is not given. */
uint64_t ml_sampling_bytes(bool sampling, uint64_t rate_bytes);

/* Put one value of --allocator behind those in the list. False: `why` says why not. */
bool ml_options_add_allocator(
    char list[ML_CONTROL_ALLOCATORS_BYTES], const char *value, struct ml_error_message *why
);

extern const struct ml_option_table ml_run_table, ml_attach_table;

/* The option of `memlog run` that a word is and that `memlog attach` has not; NULL: none. */
const char *ml_options_of_run_alone(const char *word);

/* Set the defaults. Errors: ML_ENV_MEMORY. Owner: free with ml_options_fini. */
ML_NODISCARD enum ml_status ml_options_init(struct ml_options *out_options);
void ml_options_fini(struct ml_options *options);

/* Read the arguments behind `memlog run` into initialised options.
 *
 * Shape:  [OPTIONS] [--] PROGRAM [ARGS...], NULL-terminated. A value follows as `--x=V` or, where
 *         one is required, as the next argument.
 * Errors: ML_PEER_FORM, ML_ENV_MISSING, ML_ENV_REFUSED, with an error message that names the
 *         argument.
 * Owner:  arguments are borrowed for the options' life. */
ML_NODISCARD enum ml_status ml_options_parse(
    struct ml_options *options, char *const *arguments, struct ml_error_message *error
);

/* The same behind `memlog attach`: [OPTIONS] PID... */
ML_NODISCARD enum ml_status ml_options_parse_attach(
    struct ml_options *options, char *const *arguments, struct ml_error_message *error
);

/* Every MEMLOG_* key that memlog or memlog-analyzer asks the environment for. */
enum { ML_ENVIRONMENT_KEYS = 6 };
extern const char *const ml_environment_keys[ML_ENVIRONMENT_KEYS];

/* Refuse MEMLOG_* keys that memlog does not know.
 *
 * Errors: ML_ENV_MISSING with an error message that names the key. */
ML_NODISCARD enum ml_status
ml_options_check_environment(char *const *environment, struct ml_error_message *error);

/* The number of a signal that is given by name ("USR2", "SIGUSR2") or by number. 0: no signal. */
int ml_signal_parse(const char *name);

#endif
