/* A run without a program: processes that run already are recorded, and left as they were. Room:
 * host. Context: the main thread of `memlog attach`.
 *
 * One rule: stdout stays untouched, and the processes' ends are not memlog's. */
#ifndef MEMLOG_HOST_CLI_ATTACH_H
#define MEMLOG_HOST_CLI_ATTACH_H

#include "host/policy/options.h"

/* Attach to the processes of `options`, until the end that they say. Returns memlog's exit code. */
int ml_attach(const struct ml_options *options);

#endif
