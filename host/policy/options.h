/* The command line of `memlog run`. Room: host. Context: start of the program; caller's storage.
 *
 * One rule: nothing is guessed and nothing is ignored. An option, value or MEMLOG_* environment key
 * that this version cannot honour is an error that names it. */
#ifndef MEMLOG_HOST_POLICY_OPTIONS_H
#define MEMLOG_HOST_POLICY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "base/option_table.h"
#include "host/policy/mode.h"
#include "host/policy/page_place.h"
#include "host/policy/patterns.h"
#include "host/policy/trigger_rules.h"
#include "host/policy/upload_target.h"
#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"
#include "ipc/wire/staging.h"

/* What a full pipe does; same numbers as ml_control_page.overrun. */
enum ml_overrun { ML_OVERRUN_BLOCK = 0, ML_OVERRUN_SAMPLE = 1 };

enum ml_sandbox { ML_SANDBOX_AUTO = 0, ML_SANDBOX_STRICT, ML_SANDBOX_NONE, ML_SANDBOX_COUNT };

/* Ended processes that a report tells of one by one: more than anybody reads, and what they take in
 * the service is tens of MiB: a compiler's profile has 50 to 500 KiB. */
enum { ML_KEEP_PROCESSES_DEFAULT = 1000 };

/* Where pruned dumps go; `url` NULL: nowhere. */
struct ml_upload_options {
    const char *url;
    struct ml_upload_target target;
    uint64_t max_bytes;
    unsigned names;         /* of ml_upload_names: tools/analyzer/upload/redact.h */
    const char *token_file; /* a bearer token in its first line; NULL: none */
    const char *ca_file;    /* certificates to trust; NULL: the system's */
    const char *spool;      /* NULL: in the user's state folder */
    uint32_t wait_s;        /* at the run's end; what is not sent by then waits in the spool */
};

/* --dump-at-peak: by how much more than at its last dump the tree's peak makes another one. */
struct ml_peak_step {
    bool is_set;
    uint32_t percent; /* of that peak, and a mebibyte at least; 0: by bytes */
    uint64_t bytes;   /* 0: by percent */
};

struct ml_options {
    enum ml_mode mode;
    enum ml_stack_mode stack_mode;
    uint64_t sampling_bytes; /* 1: every allocation; at most ML_SAMPLING_MAX_BYTES */
    bool sampling;           /* --memlog-sampling: at the usual rate, where none is given */
    bool keep_small_allocations;
    enum ml_overrun overrun;
    enum ml_sandbox sandbox;
    uint64_t buffer_bytes;         /* what a thread stages */
    uint32_t staging_slots;        /* that in 4 KiB each */
    uint32_t unwind_check;         /* 0: none */
    uint64_t service_memory_bytes; /* of memlog-service's tables; 0: a part of what there is */
    uint64_t client_memory_bytes;  /* of what one process may hold of them; 0: nine tenths */
    uint32_t keep_processes;       /* ended ones whose profiles stay apart */
    bool end_with_root;
    bool quiet;
    bool help;          /* --help was asked for: nothing else counts */
    const char *output; /* NULL: memlog.PROGRAM.PID in the current folder */
    struct ml_trigger_rules triggers;
    struct ml_page_place page; /* where the live page is; ML_PAGE_NONE: nowhere */
    bool page_remote;          /* others than this machine may reach it */
    struct ml_upload_options upload;
    uint32_t dump_interval_s; /* 0: none */
    struct ml_peak_step peak_step;
    int dump_signal;           /* 0: none */
    struct ml_patterns *roles; /* (regex, enum memlog_service_role) */
    struct ml_patterns *only;
    struct ml_patterns *never;
    const char *never_list; /* a file of more programs that are never recorded; NULL: none */
    char *const *program;   /* argv of the program, borrowed from the command line */
};

/* "auto", "strict", "none"; NULL behind the last. */
extern const char *const ml_sandbox_names[ML_SANDBOX_COUNT + 1];

/* What --upload-names may be; NULL behind the last. */
extern const char *const ml_upload_names[];

/* In the order of enum ml_stack_mode; NULL behind the last. */
extern const char *const ml_stack_mode_names[];

/* Options of `memlog run` that `memlog start` has, too, stored in a member of the command's struct.
 */
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
        .help = "what stands in a stack: its functions, or below them the thread's name, too "     \
                "(pseudo and mixed are not in this version):"                                      \
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

/* The rate that --memlog-sampling and --memlog-sampling-rate come to; `rate_bytes` 0: not given. */
uint64_t ml_sampling_bytes(bool sampling, uint64_t rate_bytes);

/* Whether this version has it. */
bool ml_stack_mode_available(enum ml_stack_mode mode, struct ml_error_message *error);

extern const struct ml_option_table ml_run_table;

/* The defaults. Errors: ML_ENV_MEMORY. Owner:  free with ml_options_fini. */
ML_NODISCARD enum ml_status ml_options_init(struct ml_options *out_options);
void ml_options_fini(struct ml_options *options);

/* Read the arguments behind `memlog run` into initialised options.
 *
 * Shape:  [OPTIONS] [--] PROGRAM [ARGS...], NULL-terminated; a value may follow as `--x=V` or,
 * where one is required, as the next argument. Errors: ML_PEER_*, ML_ENV_MISSING, each with a
 * error message that names the argument. Owner:  arguments are borrowed for the options' life. */
ML_NODISCARD enum ml_status ml_options_parse(
    struct ml_options *options, char *const *arguments, struct ml_error_message *error
);

/* Refuse MEMLOG_* keys that memlog does not know.
 *
 * Errors: ML_ENV_MISSING with an error message that names the key. */
ML_NODISCARD enum ml_status
ml_options_check_environment(char *const *environment, struct ml_error_message *error);

/* A signal by name, "USR2", "SIGUSR2", or number. 0: there is none of that name. */
int ml_signal_parse(const char *name);

#endif
