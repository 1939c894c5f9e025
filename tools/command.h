/* The analyzer's sub-commands. Room: tools. Context: main's thread.
 *
 * One rule: stdout is for data, stderr for everything said. A command answers with its exit code:
 * 0, 1 when it could not do it, 2 when it was not understood. */
#ifndef MEMLOG_TOOLS_COMMAND_H
#define MEMLOG_TOOLS_COMMAND_H

#include "tools/arguments.h"
#include "tools/profile.h"
#include "tools/stacks.h"

enum { ML_EXIT_OK = 0, ML_EXIT_FAILED = 1, ML_EXIT_USAGE = 2 };

struct ml_command {
    const char *name;
    const char *summary; /* one line */
    const char *help;    /* all of it, with an example */
    int (*run)(const struct ml_command *command, int argc, char **argv); /* behind its name */
};

extern const struct ml_command ml_command_report;
extern const struct ml_command ml_command_convert;

/* Read a command's words. ML_EXIT_OK, or the exit code: after --help, or after a complaint.
 * `options` need not hold --help. Exactly one file is wanted. */
int ml_command_arguments(
    const struct ml_command *command,
    int argc,
    char **argv,
    const struct ml_option *options,
    size_t options_count,
    const char **out_file,
    bool *out_go_on
);

/* Say that a word was not understood, and where help is. Returns ML_EXIT_USAGE. */
int ml_command_complain(const struct ml_command *command, const char *complaint);

/* A dump, read and with names. */
struct ml_loaded {
    struct ml_profile profile;
    struct ml_stacks stacks;
    struct ml_symbolizer *symbolizer;
};

/* Load `path` ("-": stdin). False after a message on stderr; what is cut or damaged is said there,
 * too, and loaded as far as it goes. _fini in any case. */
bool ml_command_load(
    const struct ml_command *command, const char *path, struct ml_loaded *out_loaded
);
void ml_loaded_fini(struct ml_loaded *loaded);

#endif
