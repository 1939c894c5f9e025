/* Small files that people write: policies and budgets. Room: tools. Context: one thread.
 *
 * One rule: such a file is read in the sandbox, as a dump is. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_TEXT_FILE_H
#define MEMLOG_TOOLS_ANALYZER_CLI_TEXT_FILE_H

#include <stddef.h>

#include "tools/analyzer/cli/command.h"

/* The bytes of a file, up to one more than `most_bytes`, which says that it is too large. NULL:
 * there is a message, in which `hint` is the next step where no such file is. Owner: free. */
char *ml_command_text_file(
    const struct ml_command *command,
    const char *path,
    size_t most_bytes,
    const char *hint,
    size_t *out_count
);

#endif
