/* One run: the program, its tree, and everything of memlog's around them, from start to exit code.
 * Room: host. Context: the main thread of `memlog run`.
 *
 * One rule: the host outlives the program, and whatever happens to memlog, the program's exit code
 * comes back. */
#ifndef MEMLOG_HOST_CLI_RUN_H
#define MEMLOG_HOST_CLI_RUN_H

#include "host/policy/options.h"

/* memlog itself failed; docker's, env's and timeout's number for it. */
enum { ML_EXIT_FAILED = 125, ML_EXIT_USAGE = 2 };

/* Run the program of `options` in `environment` to its end. Returns the exit code of the process.
 */
int ml_run(const struct ml_options *options, char *const *environment);

#endif
