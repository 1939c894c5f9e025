/* Helpers of memlog's own that are nobody's children. Room: host. Context: any thread.
 *
 * One rule: a program that links the host and waits for all its children must not wait for ours:
 * whoever is started here has lost its parent. (`memlog run` is the subreaper and gets it back.) */
#ifndef MEMLOG_HOST_PROCESS_ORPHAN_H
#define MEMLOG_HOST_PROCESS_ORPHAN_H

#include <sys/types.h>

/* Start a process that runs `child`, which does not return: every signal is blocked in it, and it
 * may call async-signal-safe functions alone. Answers its pid, and a pidfd (-1: the kernel has
 * none); -1: it could not, errno says why. */
pid_t ml_orphan_start(void (*child)(void *context), void *context, int *out_pidfd);

#endif
