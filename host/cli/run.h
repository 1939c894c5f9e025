/* One run, from start to exit code: the program, its process tree, the engine and the page. Room:
 * host. Context: the main thread of `memlog run`.
 *
 * One rule: the host outlives the program and returns the program's exit code, even if memlog fails
 * on the way. */
#ifndef MEMLOG_HOST_CLI_RUN_H
#define MEMLOG_HOST_CLI_RUN_H

#include "host/policy/options.h"

/* memlog itself failed: the number that docker, env and timeout use for this. */
enum { ML_EXIT_FAILED = 125, ML_EXIT_USAGE = 2 };

/* Run the program of `options` in `environment` to its end. Returns memlog's exit code. */
int ml_run(const struct ml_options *options, char *const *environment);

#endif
