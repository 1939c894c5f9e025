/* Helpers of memlog's own that are not children of the host. Room: host. Context: any thread.
 *
 * One rule: a program that links the host and waits for all its children must not wait for
 * memlog's. What is started here has lost its parent. (`memlog run` is the subreaper and gets it
 * back.) */
#ifndef MEMLOG_HOST_PROCESS_ORPHAN_H
#define MEMLOG_HOST_PROCESS_ORPHAN_H

#include <sys/types.h>

#include "host/process/launcher.h"

/* Start a process that runs `child`, which does not return and may call async-signal-safe functions
 * alone. It has a session of its own, since the terminal's signals are for the program, lets every
 * signal in, and has back what the host was started with (`inherited`; NULL: it keeps the host's).
 * Answers its pid, and a pidfd (-1: the kernel has none); -1: it could not, errno says why. */
pid_t ml_orphan_start(
    const struct ml_inherited *inherited,
    void (*child)(void *context),
    void *context,
    int *out_pidfd
);

#endif
