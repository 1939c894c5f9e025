/* --suppressions of a command: its file, and what is told of it. Room: tools. Context: main's
 * thread. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_SUPPRESS_H
#define MEMLOG_TOOLS_ANALYZER_CLI_SUPPRESS_H

#include <stddef.h>
#include <stdio.h>

#include "tools/analyzer/cli/command.h"

/* Read the file, once for all dumps of the command. NULL after an error message. */
const struct ml_suppressions *
ml_command_suppressions(const struct ml_command *command, const char *path);

/* What was left out of each of these, and which patterns matched in none. `where` is what each is
 * called; NULL: there is one. Says nothing where no file was given. */
void ml_command_tell_suppressed(
    const struct ml_suppressed *const *suppressed, const char *const *where, size_t count, FILE *out
);

#endif
