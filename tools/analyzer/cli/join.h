/* Many dumps as one trace for Perfetto: what `memlog convert --to=perfetto A B C` writes. Room:
 * tools. Context: main's thread.
 *
 * One rule: the dumps are read one by one, each may be large. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_JOIN_H
#define MEMLOG_TOOLS_ANALYZER_CLI_JOIN_H

#include "tools/analyzer/cli/command.h"

/* Write all dumps of the files (NULL ends them) to load->output_path, with all names. Returns the
 * exit code. */
int ml_command_join(
    const struct ml_command *command, const struct ml_load *load, const char *const *files
);

#endif
