/* The analyzer's sub-commands. Room: tools. Context: main's thread.
 *
 * One rule: stdout is for data, stderr for messages. A command returns its exit code: 0, 1 when it
 * failed, 2 for a usage error. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_COMMAND_H
#define MEMLOG_TOOLS_ANALYZER_CLI_COMMAND_H

#include "base/option_table.h"
#include "tools/analyzer/cli/output.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/report/report.h"
#include "tools/analyzer/stacks/frame_filter.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/regroup.h"
#include "tools/analyzer/stacks/stacks.h"
#include "tools/analyzer/suppressions/suppress.h"

enum {
    ML_EXIT_OK = 0,
    ML_EXIT_FAILED = 1,
    ML_EXIT_USAGE = 2,
    ML_EXIT_LACKING = 3, /* the dump does not have the requested process or time */
    ML_EXIT_BROKEN = 3,  /* of budgets, which ask for nothing that a dump may lack */
    ML_EXIT_UNSURE = 4   /* a budget can be called neither held nor broken */
};

/* Which of a command's operands are dumps: a folder stands for its newest one. */
enum ml_command_dumps {
    ML_DUMPS_NONE = 0,
    ML_DUMPS_ALL,         /* each operand */
    ML_DUMPS_OR_NEWEST,   /* each; without any it is the newest of the newest run here */
    ML_DUMPS_BEHIND_FIRST /* each but the first; without any of them likewise */
};

struct ml_command {
    struct ml_option_table table;
    enum ml_command_dumps dumps;
    int (*run)(const struct ml_command *command, char *const *words); /* behind its name */
};

extern const struct ml_command ml_command_report;
extern const struct ml_command ml_command_container_names;
extern const struct ml_command ml_command_convert;
extern const struct ml_command ml_command_check;
extern const struct ml_command ml_command_diff;
extern const struct ml_command ml_command_entries;
extern const struct ml_command ml_command_flamegraph;
extern const struct ml_command ml_command_components;
extern const struct ml_command ml_command_expand;
extern const struct ml_command ml_command_list;
extern const struct ml_command ml_command_page_data;
extern const struct ml_command ml_command_place_names;
extern const struct ml_command ml_command_report_rows;
extern const struct ml_command ml_command_suspects;
extern const struct ml_command ml_command_symbolize;
extern const struct ml_command ml_command_timeline;
extern const struct ml_command ml_command_upload;

/* Options that several commands have, stored in a member of the command's struct. */
#define ML_ROW_OUTPUT(type, member, text)                                                          \
    {                                                                                              \
        .name = "--output", .short_name = "-o", ML_PATH_TO(type, member), .value = "FILE",         \
        .help = (text)                                                                             \
    }
#define ML_ROW_PID(type, member, text)                                                             \
    {                                                                                              \
        .name = "--pid", ML_COUNT_TO(type, member), .least = 1, .value = "PID",                    \
        .wants = "a process id", .help = (text)                                                    \
    }
#define ML_ROW_HEAP(type, member)                                                                  \
    {                                                                                              \
        .name = "--heap", ML_TEXT_TO(type, member), .value = "NAME",                               \
        .help = "a heap that the program reports itself (memlog.h) instead of malloc's; memlog "   \
                "report --by=heap lists them"                                                      \
    }
#define ML_ROW_LIMIT(type, member, text)                                                           \
    { .name = "--limit", ML_COUNT_TO(type, member), .least = 1, .value = "N", .help = (text) }
#define ML_ROW_METRIC(type, member, text)                                                          \
    { .name = "--metric", ML_WORD_TO(type, member), .words = ml_metric_words, .help = (text) }
#define ML_ROW_DUMP(type, member)                                                                  \
    {                                                                                              \
        .name = "--dump", ML_COUNT_TO(type, member), .least = 1, .value = "N",                     \
        .help = "of several dumps in one file (cat A B) the Nth (default: the last)"               \
    }
#define ML_ROW_ENDED(type, member)                                                                 \
    {                                                                                              \
        .name = "--ended", ML_WORD_TO(type, member), .least = ML_ENDED_SHOWN,                      \
        .words = ml_ended_words,                                                                   \
        .help = "count what ended processes left as live, or never (default: only where nothing "  \
                "runs any more)"                                                                   \
    }
#define ML_ROW_MOMENT(type, member)                                                                \
    {                                                                                              \
        .name = "--at", ML_WORD_TO(type, member), .words = ml_moment_words,                        \
        .help = "as of the dump (ended processes: each as it was when it was largest), or of the " \
                "peak, when all together had most private memory (default: dump, and peak where "  \
                "nothing runs any more)"                                                           \
    }
#define ML_ROW_BY(type, member)                                                                    \
    {                                                                                              \
        .name = "--by", ML_WORD_TO(type, member), .least = ML_GROUP_TYPE, .value = "ORDER",        \
        .words = ml_grouping_words,                                                                \
        .help =                                                                                    \
            "what stands outside of the functions, or behind them inside: types, heaps (those "    \
            "of memlog.h beside malloc's) or scopes:"                                              \
    }
#define ML_ROW_SUPPRESSIONS(type, member)                                                          \
    {                                                                                              \
        .name = "--suppressions", ML_PATH_TO(type, member), .value = "FILE",                       \
        .help = "leave known leaks out of what is live or left, as LeakSanitizer does: lines of "  \
                "leak:PATTERN, for a function, source file or module (*, ^, $)"                    \
    }
#define ML_ROW_PRUNE(type, member)                                                                 \
    {                                                                                              \
        .name = "--prune", ML_SIZE_TO(type, member), .least = 1, .value = "BYTES",                 \
        .help = "leave out stacks that hold less than BYTES (16K is Chromium's), live and at the " \
                "peak, and fewer than 1,024 blocks: they become <other>, sums stay"                \
    }
#define ML_ROWS_FRAME_FILTER(type, member)                                                         \
    {.name = "--focus",                                                                            \
     ML_REGEX_TO(type, member.focus),                                                              \
     .value = "REGEX",                                                                             \
     .help = "stacks alone in which a function, source file or module matches"},                   \
        {.name = "--ignore",                                                                       \
         ML_REGEX_TO(type, member.ignore),                                                         \
         .value = "REGEX",                                                                         \
         .help = "no stack in which one matches"},                                                 \
        {.name = "--show",                                                                         \
         ML_REGEX_TO(type, member.show),                                                           \
         .value = "REGEX",                                                                         \
         .help = "of each stack the frames alone that match"},                                     \
    {                                                                                              \
        .name = "--hide", ML_REGEX_TO(type, member.hide), .value = "REGEX",                        \
        .help = "of each stack the frames that do not match"                                       \
    }

/* The operands: dumps, `count` of them. A command with ML_DUMPS_OR_NEWEST takes none, too. */
#define ML_NO_DUMP_WAS_NAMED                                                                       \
    "no dump was named, and none is here; dumps are the *.pftrace files in the output folder of "  \
    "memlog run"
#define ML_OPERANDS_DUMPS(type, member, count)                                                     \
    .operands = ML_OPERANDS_FILES, .operands_offset = offsetof(type, member),                      \
    .operands_least = (count), .operands_most = (count), .operands_missing = ML_NO_DUMP_WAS_NAMED

/* Likewise, none (ML_DUMPS_OR_NEWEST) to `count`. */
#define ML_OPERANDS_NEWEST(type, member, count)                                                    \
    .operands = ML_OPERANDS_FILES, .operands_offset = offsetof(type, member),                      \
    .operands_most = (count)

extern const char *const ml_metric_words[]; /* in the enum's order */
extern const char *const ml_moment_words[]; /* likewise, up to ML_MOMENT_PEAK */
extern const char *const ml_ended_words[];  /* from ML_ENDED_SHOWN on */

/* Read a command's words into its request. True, or the exit code: after --help, or after a
 * error message. `out_given` as of ml_option_table_read(). */
bool ml_command_read(
    const struct ml_command *command,
    char *const *words,
    void *request,
    uint64_t *out_given,
    int *out_exit_code
);

/* The newest dump of the newest run here, which is said on stderr. NULL: there is none, and an
 * error message. */
const char *ml_command_newest(const struct ml_command *command);

/* The same of a folder. */
const char *ml_command_newest_in(const struct ml_command *command, const char *folder);

/* Width and colour that suit stdout. */
struct ml_report_style ml_command_style(void);

/* Check that stdout took everything. ML_EXIT_OK, or ML_EXIT_FAILED after a message. */
int ml_command_finish(const struct ml_command *command);

/* Report the state of an output (its path, NULL: stdout). ML_EXIT_OK, or ML_EXIT_FAILED after a
 * message. */
int ml_command_written(const struct ml_command *command, const char *path, enum ml_status status);

/* Print a message on stderr: "memlog NAME: ..." and a newline. Unprintable characters are replaced
 * (base/printable.h). */
__attribute__((format(printf, 2, 3))) void
ml_command_say(const struct ml_command *command, const char *format, ...);

/* The same about a file, "memlog NAME: PATH: ...". */
__attribute__((format(printf, 3, 4))) void
ml_command_say_of(const struct ml_command *command, const char *path, const char *format, ...);

/* From now on messages are for a program that started this one: they have neither "memlog NAME: "
 * nor a file's path in front. */
void ml_command_be_bare(void);
bool ml_command_is_bare(void);

/* Report that a word was not understood, and where help is. Returns ML_EXIT_USAGE. */
int ml_command_fail(const struct ml_command *command, const char *error);

/* A dump, read and with names. */
struct ml_loaded {
    struct ml_profile profile;
    struct ml_stacks stacks;
    struct ml_groups groups; /* as ml_load.groups */
    struct ml_symbolizer *symbolizer;
    const struct ml_suppressions *suppressions; /* those of ml_load; NULL: none */
    struct ml_suppressed suppressed;            /* by them */
    bool is_stream;                             /* from a pipe: it cannot be read again */
    bool is_lacking; /* with ml_load.may_lack: the request is not in the dump, which was not
                        processed */
};

/* What of each process is loaded. */
enum ml_load_processes {
    ML_LOAD_AS_TREE, /* what ended ones left is live or freed as in the tree */
    ML_LOAD_OWN,     /* their own live figures: for lists of processes */
    ML_LOAD_SERIES   /* likewise, but only series and their stacks; nothing of the cells */
};

/* Of which moment processes' mappings are. */
enum ml_moment {
    ML_MOMENT_DUMP,
    ML_MOMENT_PEAK, /* of the tree's most private memory */
    ML_MOMENT_BEST  /* that, where several processes are told and nobody runs any more */
};

/* Options of a load. */
struct ml_load {
    const char *path;               /* "-": stdin */
    const char *output_path;        /* the only file that may be written; NULL: none */
    const char *second_output_path; /* and this one */
    uint32_t pid;                   /* this process alone, as if it were the tree; 0: all */
    const struct ml_pids *pids;     /* likewise of several; NULL: all */
    const char *role;               /* processes of that role alone; NULL: all */
    const char *heap;               /* all figures are of that heap's; NULL: malloc's */
    bool may_lack_heap;             /* an earlier dump: the heap may not be in it yet */
    bool may_lack;                  /* an earlier dump: the pid or role may not be in it yet */
    uint64_t prune_bytes;           /* tools/analyzer/stacks/prune.h; 0: nothing is left out */
    struct ml_frame_filter filter;  /* tools/analyzer/stacks/frame_filter.h; good ones */
    enum ml_grouping grouping;      /* tools/analyzer/stacks/regroup.h */
    uint32_t dump;                  /* which of the file's, from 1; 0: the last */
    enum ml_groups_of groups;       /* tools/analyzer/report/breakdown.h */
    const char *suppressions;       /* a file of known leaks; NULL: none */
    const char *alternative_dirs;   /* tools/analyzer/symbols/search.h; NULL: none */
    const char *breakpad_dirs;      /* likewise */
    enum ml_ended ended;            /* whether what processes left counts as live */
    enum ml_moment moment;
    enum ml_load_processes processes;
    bool takes_unrecorded; /* it has words for a process without a profile */
    bool is_nameless;      /* functions need no names */
    bool finds_types; /* stacks have types by their frames, too; tools/analyzer/stacks/types.h */
    bool is_fetching; /* ask the servers of DEBUGINFOD_URLS */
    bool is_of_processes; /* names by processes' files alone, and none from or into the cache */
};

/* Put up the sandbox (tools/analyzer/sandbox/confine.h), with the helpers outside that the load may
 * need. */
void ml_command_confine(const struct ml_load *load);

/* A symbolizer as the environment and the load want it. NULL: no memory. */
struct ml_symbolizer *ml_command_symbolizer(const struct ml_load *load);

/* Load it, in the sandbox (tools/analyzer/sandbox/confine.h). ML_EXIT_OK, or the exit code after a
 * message on stderr; a cut or damaged file is reported there too, and loaded as far as possible.
 * Call _fini in any case. */
int ml_command_load(
    const struct ml_command *command, const struct ml_load *load, struct ml_loaded *out_loaded
);
/* Load two dumps to compare. If nothing runs any more in one of them, what ended processes left
 * counts in both, unless an option says otherwise. Returns the same. */
int ml_command_load_pair(
    const struct ml_command *command, const struct ml_load loads[2], struct ml_loaded out_loaded[2]
);
/* Load a dump and, unless `before` is NULL, an earlier one to compare with, which may lack what is
 * asked for. */
int ml_command_load_with(
    const struct ml_command *command,
    const struct ml_load *load,
    const char *before,
    struct ml_loaded out_loaded[2]
);
void ml_loaded_fini(struct ml_loaded *loaded);

/* Whether the dump knows the figure; else false after a message: what blocks hold of pages is not
 * known of sampled processes, and older dumps do not have it. */
bool ml_command_knows(
    const struct ml_command *command,
    const char *path,
    const struct ml_loaded *loaded,
    enum ml_metric metric
);

/* Report at the end what is missing because helpers (tools/analyzer/helpers/helper.h) were killed.
 */
void ml_command_say_losses(const struct ml_command *command);

/* Copy the dump file loaded from `path`, as far as it is whole, and append the names that were
 * found. *out_places: for how many places. Errors: ML_ENV_MEMORY, ML_ENV_SYSTEM.
 */
ML_NODISCARD enum ml_status ml_command_write_symbolized(
    const char *path, const struct ml_loaded *loaded, FILE *out, size_t *out_places
);

#endif
