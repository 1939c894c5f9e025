/* Many dumps of one run in one file: what `memlog convert --to=perfetto A B C` and `--to=sqlite`
 * write. Room: tools. Context: main's thread.
 *
 * One rule: the dumps are read one by one, each may be large. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_JOIN_H
#define MEMLOG_TOOLS_ANALYZER_CLI_JOIN_H

#include "tools/analyzer/cli/command.h"

enum ml_join_form {
    ML_JOIN_TRACE,   /* Perfetto's (tools/analyzer/perfetto/join.h) */
    ML_JOIN_DATABASE /* SQLite's (tools/analyzer/sqlite/many.h) */
};

/* Write all dumps of the files (NULL ends them) to load->output_path, with all names. Those that
 * lack what load->may_lack lets them lack are left out. Returns the exit code. */
int ml_command_join(
    const struct ml_command *command,
    const struct ml_load *load,
    const char *const *files,
    enum ml_join_form form
);

#endif
